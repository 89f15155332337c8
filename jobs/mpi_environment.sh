# shellcheck shell=bash
# Sourced: what Open MPI must be told on a workstation. Root and more ranks than cores are refused otherwise (Open MPI
# counts cores, nproc their threads), one or two ranks would be bound to a core each, and idle ranks would spin on cores
# that others need.
if [ "$(id -u)" -eq 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
