# docker build -t evenkeel . && docker run --rm -v "$PWD:/work" evenkeel predict my.onnx photos/ --out out/
FROM rust:1-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN cargo build --locked --release -p evenkeel-cli \
    && cp target/release/evenkeel /evenkeel

FROM debian:bookworm-slim
COPY --from=build /evenkeel /usr/local/bin/evenkeel
RUN useradd --create-home --uid 10001 evenkeel
USER 10001
WORKDIR /work
ENTRYPOINT ["evenkeel"]
CMD ["--help"]
