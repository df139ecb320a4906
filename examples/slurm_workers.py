"""
Workers from Slurm
==================

``wcll run --runner dask`` on the nodes of a Slurm cluster, through dask-jobqueue (``pip install dask-jobqueue``). This
page is not run, and was not tried on a Slurm cluster: the job script that it leads to is tested as text.
"""

# %%
# What Slurm is asked for, for every worker. It trains one group of runs at a time, so it has one thread of Dask's.
# ``tls://`` keeps others of the network out, with the certificates that variables of the environment name
# (see the guide, "Workers of a Dask scheduler"); Slurm passes these variables on to its jobs.

JOB = {
    "queue": "short",
    "cores": 1,
    "processes": 1,
    "memory": "4GB",
    "walltime": "01:00:00",
    "interface": "ib0",  # the network of the nodes
    "protocol": "tls://",
    "job_script_prologue": ["source wcll/.venv/bin/activate"],
}

# %%
# The script stays open on the login node while ``wcll run`` is at work beside it, with the address that is printed:
# ``wcll run suite.toml --runner dask --address tls://...``. Jobs that end when their time is over are asked for again;
# what they had begun is done by others.

if __name__ == "__main__":
    from dask_jobqueue import SLURMCluster

    cluster = SLURMCluster(**JOB, scheduler_options={"interface": "ib0", "dashboard_address": None})
    cluster.adapt(minimum_jobs=20, maximum_jobs=20)
    print(cluster.scheduler_address, flush=True)
    input("Enter ends the workers. ")
