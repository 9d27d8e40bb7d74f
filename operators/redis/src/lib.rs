//! redis-operator
