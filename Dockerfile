# warpgauge in a container.
#
#   docker build -t warpgauge .
#   docker run --gpus all -p 127.0.0.1:8000:8000 -e WARPGAUGE_API_KEYS=secret warpgauge
#
# The image has a compiler: NVRTC, NVIDIA's run-time compiler, which is proprietary. Whoever builds the
# image accepts NVIDIA's EULA (https://docs.nvidia.com/cuda/eula/), which applies above all to passing
# the image on. To leave it out:
#
#   docker build --build-arg INSTALL_NVRTC=0 -t warpgauge .
#
# Without it the server is not ready (`/health` answers 503) until it has a compiler: mount a CUDA
# toolkit at /usr/local/cuda, or run `warpgauge toolchain install` once with a volume at
# /var/lib/warpgauge.
#
# `--build-arg INSTALL_TRITON=1` adds Triton, which has programs of NVIDIA's under the same EULA, and
# NVRTC if that was left out.
#
# The build uses cache mounts: BuildKit, which is Docker's builder from version 23 on.

# Base images are named by the digest of their index, which holds the image for each architecture. A newer one is taken by
# hand: `docker buildx imagetools inspect debian:bookworm-slim` prints its digest.
FROM rust:1.97.0-slim-bookworm@sha256:6d220bf85c74e842a79da63997af8d2e74455c0b8847d8bb3a5888572334991d AS builder
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --release --locked -p warpgauge -p warpgauge-emulator \
    && mkdir /out \
    && cp target/release/warpgauge target/release/libwarpgauge_emulator.so /out/

FROM debian:bookworm-slim@sha256:7b140f374b289a7c2befc338f42ebe6441b7ea838a042bbd5acbfca6ec875818
ARG INSTALL_NVRTC=1
ARG INSTALL_TRITON=0
# python3 and pip bring NVRTC (`warpgauge toolchain install`); curl asks whether the server is ready.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates curl python3-minimal python3-pip \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 10001 warpgauge \
    && useradd --system --uid 10001 --gid 10001 --home-dir /var/lib/warpgauge --create-home warpgauge
# The program finds the emulator beside itself.
COPY --from=builder /out/ /opt/warpgauge/
COPY kernels/ /opt/warpgauge/kernels/
RUN ln -s /opt/warpgauge/warpgauge /usr/local/bin/warpgauge
# Beside the program, not in the volume: a directory of the host that is mounted there would hide it.
RUN if [ "$INSTALL_NVRTC" = 1 ]; then \
        WARPGAUGE_DATA_DIR=/opt/warpgauge/cuda PIP_ROOT_USER_ACTION=ignore warpgauge toolchain install \
        && chmod -R a+rX /opt/warpgauge/cuda; \
    fi
RUN if [ "$INSTALL_TRITON" = 1 ]; then \
        WARPGAUGE_DATA_DIR=/opt/warpgauge/cuda PIP_ROOT_USER_ACTION=ignore warpgauge toolchain install \
            --with triton \
        && chmod -R a+rX /opt/warpgauge/cuda; \
    fi

# By number, so that orchestrators see that it is not root.
USER 10001:10001
WORKDIR /var/lib/warpgauge
ENV WARPGAUGE_DATA_DIR=/var/lib/warpgauge \
    HOST=0.0.0.0 \
    PORT=8000 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    WARPGAUGE_TOOLCHAIN=/opt/warpgauge/cuda/toolchain/nvrtc-13:/opt/warpgauge/cuda/toolchain/nvrtc-12:/opt/warpgauge/cuda/toolchain/triton

VOLUME /var/lib/warpgauge
EXPOSE 8000
# Ready, that is: for containers that wait for this one. An orchestrator that restarts what is not live
# asks for /live (docs/operations.md, "Probes").
HEALTHCHECK --interval=15s --timeout=7s --start-period=30s --retries=3 \
    CMD ["sh", "-c", "curl --fail --silent --show-error \"http://127.0.0.1:${PORT}/health\" >/dev/null || exit 1"]
ENTRYPOINT ["warpgauge"]
CMD ["serve"]
