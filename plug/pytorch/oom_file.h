/* SPDX-License-Identifier: MIT */
/* The snapshot that is written when memory runs out. Any thread. */
#ifndef PLUG_PYTORCH_OOM_FILE_H
#define PLUG_PYTORCH_OOM_FILE_H

/* Memory has run out: writes a snapshot if enabled. Call without locks, because it takes the
 * interpreter's lock. */
void tn_torch_oom_file_write(void);

#endif
