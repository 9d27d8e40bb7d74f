//! homeostat-scheduler
