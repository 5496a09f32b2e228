# The environment is built in one stage and used in another, so that no build tool or cache reaches the image.
# The base is the Debian whose own Python is 3.11.
ARG BASE=debian:12.12-slim

FROM ${BASE} AS environment
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates make python3.11 python3.11-venv \
    && rm -rf /var/lib/apt/lists/*
# Outside the project, so that a volume over the project does not hide it.
ENV VENV=/opt/venv PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1
# cpu, or cu130 and the like for an NVIDIA GPU: uv knows which build of torch that is and where it lies.
ARG TORCH_BACKEND=cpu
WORKDIR /ccwm
COPY Makefile pyproject.toml requirements.lock README.md ./
# An editable install needs only the package's place; the sources come later, so that changing them reinstalls nothing.
RUN mkdir -p src/ccwm && touch src/ccwm/__init__.py && make install TORCH_BACKEND=${TORCH_BACKEND}

FROM ${BASE}
# The three GL packages are Mesa with its software renderer, which draws pixels without a GPU or a display.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git libegl1 libgl1-mesa-dri libopengl0 make python3.11 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 ccwm \
    && install --directory --owner ccwm --group ccwm /ccwm \
    && git config --system --add safe.directory /ccwm
COPY --from=environment /opt/venv /opt/venv
ENV VENV=/opt/venv PATH=/opt/venv/bin:${PATH} MUJOCO_GL=egl
USER ccwm
WORKDIR /ccwm
COPY --chown=ccwm:ccwm . .
VOLUME /ccwm
# The image is the environment: a newer pyproject.toml in a mounted clone must not set off an installation.
CMD ["make", "--old-file", "/opt/venv/.installed", "repro"]
