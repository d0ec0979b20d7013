# docker build -t evenkeel . && docker run --rm --user "$(id -u)" -v "$PWD:/work" evenkeel predict my.onnx photos/ --out out/
# Without --user it runs as 10001, who may not write into a folder of yours.
# --build-arg FEATURES=remote for results and data in object stores
FROM rust:1-slim-bookworm AS build
ARG FEATURES=""
WORKDIR /source
COPY . .
RUN cargo build --locked --release -p evenkeel-cli --features "$FEATURES" \
    && cp target/release/evenkeel /evenkeel

FROM debian:bookworm-slim
COPY --from=build /evenkeel /usr/local/bin/evenkeel
# whom to trust in object stores
COPY --from=build /etc/ssl/certs /etc/ssl/certs
RUN useradd --create-home --uid 10001 evenkeel
USER 10001
WORKDIR /work
ENTRYPOINT ["evenkeel"]
CMD ["--help"]
