#!/bin/bash
#SBATCH --job-name=sweep-a0001-0badcafe
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --time=00:29:00
#SBATCH --no-requeue
#SBATCH --open-mode=append
#SBATCH --output="/shared/my sweeps/r.db.spool/a0001-0badcafe/slurm.log"
#SBATCH --signal=B:TERM@30
#SBATCH --exclusive
# One allocation of sweep: many trials, one after another, until the agent is told to finish.
if [ "${SLURM_RESTART_COUNT:-0}" -ne 0 ]; then echo 'started again by Slurm: nothing is done' >&2; exit 0; fi
export SWEEP_ATTEMPT=...
left=$((1680 - SECONDS))
exec /opt/sweep/bin/sweep-agent run --spool '/shared/my sweeps/r.db.spool/a0001-0badcafe' --allocation a0001-0badcafe --incarnation 1 --slots 1 --rank-program '/shared/my sweeps/r.db.spool/a0001-0badcafe/rank-in-container' --idle-limit 300 --time-limit "$left"
--- rank-in-container
#!/bin/sh
# Starts a rank in its container; the agent stays outside.
exec apptainer exec --bind '/shared/my sweeps/r.db.spool/a0001-0badcafe,/dev/shm' --nv '/images/torch 2.sif' /opt/sweep/bin/sweep-rank "$@"
