"""For the baselines' server on a CPU: does once what every compiled baseline would otherwise repeat.

Compiling something tiny probes the vector instruction set, builds the precompiled header and fills dynamo's own
tables; together about a second of every later start.
"""

import torch

torch.set_num_threads(1)  # a server with a thread pool could not fork working children
with torch.no_grad():
    torch.compile(torch.nn.ReLU())(torch.zeros(16))
torch.compiler.reset()
