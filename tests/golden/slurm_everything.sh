#!/bin/bash
#SBATCH --job-name=sweep-a0001-0badcafe
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --time=00:29:00
#SBATCH --no-requeue
#SBATCH --open-mode=append
#SBATCH --output="/shared/my sweeps/r.db.spool/a0001-0badcafe/slurm.log"
#SBATCH --signal=B:TERM@90
#SBATCH --exclusive
#SBATCH --partition=h100
#SBATCH --account=lab
#SBATCH --qos=high
#SBATCH --constraint="ib&nvme"
#SBATCH --reservation=bench
#SBATCH --nodelist=n[1-16]
#SBATCH --exclude=n3,n7,n9
#SBATCH --gres=gpu:h100:8
#SBATCH --licenses=x:2
#SBATCH --switches=1@10:00
#SBATCH --wckey=k
#SBATCH --mem=0
#SBATCH --nice=100
#SBATCH --cpus-per-task=96
#SBATCH --mail-type=END
#SBATCH --comment="a b"
# One allocation of sweep: many trials, one after another, until the agent is told to finish.
if [ "${SLURM_RESTART_COUNT:-0}" -ne 0 ]; then echo 'started again by Slurm: nothing is done' >&2; exit 0; fi
module load cuda/13
export NCCL_DEBUG=INFO
export SWEEP_ATTEMPT=...
left=$((1620 - SECONDS))
if [ "$left" -le 0 ]; then echo 'the prologue took all of the time of the job' >&2; exit 1; fi
exec /opt/sweep/bin/sweep-agent run --spool '/shared/my sweeps/r.db.spool/a0001-0badcafe' --allocation a0001-0badcafe --incarnation 1 --slots 1 --rank-program /opt/sweep/bin/sweep-rank --idle-limit 300 --nodes 4 --peers slurm --lease 15 --interface ib0 --time-limit "$left"
