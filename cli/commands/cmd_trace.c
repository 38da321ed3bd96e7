/* SPDX-License-Identifier: MIT */
/* `tarn trace`: the events of a trace as Python-like lines. */
#include "device_opt.h"
#include "report_run.h"
#include "size_text.h"
#include "tarn/report.h"

struct trace_values {
    uint64_t device;
    const char *output;
    bool compat;
};

static const struct trace_values trace_defaults = {.device = CLI_DEVICE_ALL};

static const struct cli_opt trace_opts[] = {
    CLI_DEVICE_OPT(struct trace_values),
    {.name = "output",
     .letter = 'o',
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct trace_values, output),
     .value = "FILE",
     .help = "output file (default: -, standard output)"},
    {.name = "compat",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct trace_values, compat),
     .help = "print PyTorch's TOTAL MEM, which is meaningless"},
    {0},
};

/* PyTorch prints an additional newline. */
static enum tarn_status trace_write(const struct tarn_snapshot *snapshot, const void *context,
                                    const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct trace_values *values = context;
    struct tarn_trace_text_options options = {
        .struct_size = sizeof options, .compat = values->compat, .units = cli_units()};

    options.one_device = cli_device_is_given(values->device, &options.device);
    const enum tarn_status status = tarn_report_trace(snapshot, &options, writer, error);

    return status || !values->compat ? status : writer->write(writer->context, "\n", 1);
}

static enum cli_exit trace_run(const struct cli_call *call)
{
    const struct trace_values *values = call->values;

    return cli_report_run(call, values->output, trace_write, values);
}

const struct cli_command cli_command_trace = {
    .name = "trace",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "print the trace as Python-like code, one line per event",
    .details = "a = cudaMalloc(ADDRESS, SIZE) is a new segment, b = a[OFFSET:SIZE] an allocation\n"
               "in it, del b its free. seg_N is the N-th segment of the snapshot, MEM an address\n"
               "in none. A device ends with TOTAL MEM: the requested bytes of blocks allocated\n"
               "at the end. With --compat the output is that of `python -m\n"
               "torch.cuda._memory_viz trace`, where this number is meaningless.\n",
    .examples = "tarn trace dump.pickle\n"
                "tarn trace -d 0 --compat dump.pickle",
    .prints_sizes = true,
    .opts = trace_opts,
    .values_size = sizeof(struct trace_values),
    .defaults = &trace_defaults,
    .run = trace_run,
};
