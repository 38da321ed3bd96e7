/* SPDX-License-Identifier: MIT */
/* The snapshot that is written when memory runs out. Any thread. */
#ifndef PLUG_PYTORCH_OOM_FILE_H
#define PLUG_PYTORCH_OOM_FILE_H

/* Memory has run out: writes one, if it is asked for. No lock may be held: the interpreter's is
 * taken. */
void tn_torch_oom_file_write(void);

#endif
