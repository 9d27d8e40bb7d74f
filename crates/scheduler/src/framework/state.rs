//! What plugins remember within one scheduling cycle of one pod.
//!
//! Each plugin keeps values of types of its own. A copy of the state is what lets preemption ask "and if that pod were
//! gone?" without touching the real one. It ends with the cycle: nothing here outlives the pod's attempt.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;

/// A value that a cycle can carry. Every `Clone + Send + Sync` type is one.
pub trait StateData: Any + Send + Sync {
    /// A copy that can be changed alone.
    fn copy(&self) -> Box<dyn StateData>;
    /// For downcasts.
    fn as_any(&self) -> &dyn Any;
    /// For downcasts.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Any + Clone + Send + Sync> StateData for T {
    fn copy(&self) -> Box<dyn StateData> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The state of one cycle.
#[derive(Default)]
pub struct CycleState {
    /// Few enough that a scan beats a tree: it is read for every node and plugin.
    data: Vec<(TypeId, Box<dyn StateData>)>,
    /// Annotations that the pod gets when it is bound, as one write with the binding. For plugins that choose
    /// something (devices) whose choice must be visible as soon as the pod has its node.
    pub annotations: BTreeMap<String, String>,
    /// Plugins, by place in their profile, whose filters have nothing to say about this pod.
    pub(crate) skip_filter: u64,
    /// The same for scores.
    pub(crate) skip_score: u64,
}

impl fmt::Debug for CycleState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CycleState").field("values", &self.data.len()).finish_non_exhaustive()
    }
}

impl Clone for CycleState {
    fn clone(&self) -> Self {
        Self {
            data: self.data.iter().map(|(id, d)| (*id, (**d).copy())).collect(),
            annotations: self.annotations.clone(),
            skip_filter: self.skip_filter,
            skip_score: self.skip_score,
        }
    }
}

impl CycleState {
    /// Keeps a value, in place of one of the same type.
    pub fn write<T: Any + Clone + Send + Sync>(&mut self, value: T) {
        let id = TypeId::of::<T>();
        match self.data.iter_mut().find(|(t, _)| *t == id) {
            Some((_, data)) => *data = Box::new(value),
            None => self.data.push((id, Box::new(value))),
        }
    }

    /// The value of a type.
    pub fn read<T: Any + Clone + Send + Sync>(&self) -> Option<&T> {
        let id = TypeId::of::<T>();
        let (_, data) = self.data.iter().find(|(t, _)| *t == id)?;
        (**data).as_any().downcast_ref()
    }

    /// The value of a type, to change.
    pub fn change<T: Any + Clone + Send + Sync>(&mut self) -> Option<&mut T> {
        let id = TypeId::of::<T>();
        let (_, data) = self.data.iter_mut().find(|(t, _)| *t == id)?;
        (**data).as_any_mut().downcast_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_changes_alone() {
        let mut state = CycleState::default();
        state.write(1_u8);
        state.write("one");
        let mut copy = state.clone();
        *copy.change::<u8>().unwrap() = 2;
        assert_eq!(
            (state.read::<u8>(), copy.read::<u8>(), copy.read::<&str>()),
            (Some(&1), Some(&2), Some(&"one"))
        );
        assert_eq!(state.read::<u16>(), None);
    }
}
