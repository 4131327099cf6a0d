# docker build -t skillhorizon:latest -f skillhorizon.Dockerfile PATH/TO/SKILLHORIZON
FROM python:3.11-slim
WORKDIR /src
COPY pyproject.toml requirements.lock README.md CHANGELOG.md LICENSE ./
RUN pip install --no-cache-dir --no-deps -r requirements.lock
COPY data/tokenizer data/tokenizer
COPY data/published data/published
COPY skillhorizon skillhorizon
RUN pip install --no-cache-dir --no-deps --no-build-isolation .
WORKDIR /
