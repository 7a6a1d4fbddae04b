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
#SBATCH --partition=h100
#SBATCH --constraint=bigmem
#SBATCH --mem=1T
#SBATCH --gpus-per-node=8
#SBATCH hetjob
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --partition=h100
#SBATCH --mem=200G
#SBATCH --gpus-per-node=8
# One allocation of sweep: many trials, one after another, until the agent is told to finish.
if [ "${SLURM_RESTART_COUNT:-0}" -ne 0 ]; then echo 'started again by Slurm: nothing is done' >&2; exit 0; fi
export SWEEP_ATTEMPT=...
left=$((1680 - SECONDS))
exec /opt/sweep/bin/sweep-agent run --spool '/shared/my sweeps/r.db.spool/a0001-0badcafe' --allocation a0001-0badcafe --incarnation 1 --slots 1 --rank-program /opt/sweep/bin/sweep-rank --idle-limit 300 --nodes 4 --peers slurm --lease 15 --time-limit "$left"
