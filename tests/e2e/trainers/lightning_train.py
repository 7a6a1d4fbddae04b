"""A tiny language model trained by Lightning: lightning_train.py STEPS"""
import os
import sys

import lightning_model
import sweep_trial

trainer = lightning_model.lightning.Trainer(
    accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]), strategy="ddp", max_steps=int(sys.argv[1]), accumulate_grad_batches=2,
    logger=False, enable_checkpointing=False, enable_progress_bar=False, callbacks=[sweep_trial.lightning_callback()])
trainer.fit(lightning_model.Module(), lightning_model.tokens(batch_size=2))
