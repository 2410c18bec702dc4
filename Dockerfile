# syntax=docker/dockerfile:1
# Three stages: the page, the environment, and the image that runs. The steps themselves are in deploy/image_steps.sh,
# which the tests run too.

FROM node:20.19.5-bookworm-slim AS page
WORKDIR /src
COPY deploy/image_steps.sh deploy/
COPY app/web/package.json app/web/package-lock.json app/web/.npmrc app/web/
RUN ["deploy/image_steps.sh", "packages"]
COPY app/web app/web
RUN ["deploy/image_steps.sh", "page"]

FROM python:3.11.14-slim-bookworm AS environment
WORKDIR /src
COPY deploy/image_steps.sh deploy/
COPY requirements requirements
RUN ["deploy/image_steps.sh", "dependencies", "/opt/convoke"]
COPY pyproject.toml README.md LICENSE ./
COPY engine engine
COPY app app
COPY --from=page /src/app/web/dist app/web/dist
RUN ["deploy/image_steps.sh", "service", "/opt/convoke"]

FROM python:3.11.14-slim-bookworm
COPY --from=environment /opt/convoke /opt/convoke
COPY deploy/healthcheck.py /opt/convoke/healthcheck.py
ENV PATH=/opt/convoke/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    CONVOKE_HOST=0.0.0.0
# By number, so that an orchestrator can see that it is not root.
USER 65532:65532
WORKDIR /opt/convoke
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "/opt/convoke/healthcheck.py"]
ENTRYPOINT ["convoke"]
CMD ["serve"]
