//! homeostat-apiserver
