// What only a CUDA build of torch brings along and an update asks for: the device's guard, its hooks, a generator.
// They do nothing, as fake tensors have no memory on any device and no numbers are drawn.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

constexpr auto CUDA = c10::DeviceType::CUDA;

struct Guard : c10::impl::NoOpDeviceGuardImpl<CUDA> {
  static c10::Device first() { return {CUDA, 0}; }
  static c10::Stream only() { return c10::Stream(c10::Stream::DEFAULT, first()); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device exchangeDevice(c10::Device) const override { return first(); }
  c10::Device getDevice() const override { return first(); }
  c10::Stream getStream(c10::Device) const noexcept override { return only(); }
  c10::Stream getNewStream(c10::Device, int) const override { return only(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return only(); }
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard)

struct Seed : c10::GeneratorImpl {
  Seed() : GeneratorImpl(Guard::first(), c10::DispatchKeySet(c10::DispatchKey::CUDA)) {}
  uint64_t value = c10::default_rng_seed_val;
  void set_current_seed(uint64_t seed) override { value = seed; }
  uint64_t current_seed() const override { return value; }
  uint64_t seed() override { return value; }
  void set_offset(uint64_t) override {}
  uint64_t get_offset() const override { return 0; }
  void set_state(const c10::TensorImpl&) override {}
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return {}; }
  GeneratorImpl* clone_impl() const override { return new Seed(); }
};

namespace at {
struct Hooks : CUDAHooksInterface {
  explicit Hooks(CUDAHooksArgs) {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  int getNumGPUs() const override { return 1; }
  DeviceIndex current_device() const override { return 0; }
  Generator getNewGenerator(DeviceIndex) const override { return make_generator<Seed>(); }
};
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, Hooks)
}  // namespace at
