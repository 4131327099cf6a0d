# docker build -t skillhorizon:latest -f skillhorizon.Dockerfile PATH/TO/SKILLHORIZON
FROM python:3.11-slim
COPY . /src
RUN pip install --no-cache-dir --no-deps -r /src/requirements.lock \
 && pip install --no-cache-dir --no-deps --no-build-isolation /src \
 && rm -r /src
