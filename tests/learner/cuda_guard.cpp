// A stand-in for what only a CUDA build of torch brings along and every operator asks for: the device's guard.
// It does nothing, as fake tensors have no memory on any device.
#include <c10/core/impl/DeviceGuardImplInterface.h>

struct Guard : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  static c10::Device first() { return {c10::DeviceType::CUDA, 0}; }
  static c10::Stream only() { return c10::Stream(c10::Stream::DEFAULT, first()); }
  c10::Device exchangeDevice(c10::Device) const override { return first(); }
  c10::Device getDevice() const override { return first(); }
  c10::Stream getStream(c10::Device) const noexcept override { return only(); }
  c10::Stream getNewStream(c10::Device, int) const override { return only(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return only(); }
};

C10_REGISTER_GUARD_IMPL(CUDA, Guard)
