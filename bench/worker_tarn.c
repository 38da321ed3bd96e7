/* SPDX-License-Identifier: MIT */
/* tarn on the simulated device. Its settings are PyTorch's, from the environment. */
#include "tarn_adapter.h"
#include "worker.h"

#include <stdio.h>

int main(void)
{
    struct bench_tarn tarn;
    struct tarn_config config;
    struct tarn_error error;

    if (tarn_config_from_env(&config, &error)) {
        (void)fprintf(stderr, "worker_tarn: %s\n", error.text);
        return 1;
    }
    bench_tarn_open(&tarn, "tarn", &config);
    const int status = worker_serve(&tarn.measured);

    bench_tarn_close(&tarn);
    return status;
}
