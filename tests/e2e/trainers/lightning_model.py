"""A tiny language model and its tokens, for the scripts that train by Lightning."""
import lean

lean.without("deepspeed", "mlflow")
lean.with_nothing_in("transformers")
lean.without_compiler()
import lightning  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Embedding(128, 32), torch.nn.Linear(32, 128))

    def forward(self, ids):
        return self.net(ids)

    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self(batch).flatten(0, 1), batch.flatten())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        return torch.randint(0, 128, (32,))


def tokens(batch_size):
    return torch.utils.data.DataLoader(Tokens(), batch_size=batch_size)
