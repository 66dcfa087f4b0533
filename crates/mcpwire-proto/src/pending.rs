//! Who is still owed an answer.
//!
//! The rule: a request is in the table from the moment it is taken until its answer is given, and taking it out is
//! what gives the right to answer. So there is exactly one answer, whatever dies and whoever answers late.

use std::collections::hash_map::Entry;

use crate::{Id, IdMap};

/// Requests by id, each with what is remembered of it.
#[derive(Debug)]
pub struct Pending<T> {
    owed: IdMap<T>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Pending { owed: IdMap::default() }
    }
}

impl<T> Pending<T> {
    /// Takes a request in. An id that is still in use gives the entry back: its owner could not tell the answers
    /// apart.
    pub fn open(&mut self, id: Id, entry: T) -> Result<(), T> {
        match self.owed.entry(id) {
            Entry::Occupied(_) => Err(entry),
            Entry::Vacant(slot) => {
                slot.insert(entry);
                Ok(())
            }
        }
    }

    /// Takes a request out: the caller now answers it. `None` if nobody is owed an answer under this id.
    pub fn settle(&mut self, id: &Id) -> Option<(Id, T)> {
        self.owed.remove_entry(id)
    }

    pub fn entry(&mut self, id: &Id) -> Option<&mut T> {
        self.owed.get_mut(id)
    }

    /// The id as its owner wrote it.
    pub fn key(&self, id: &Id) -> Option<&Id> {
        self.owed.get_key_value(id).map(|(key, _)| key)
    }

    pub fn contains(&self, id: &Id) -> bool {
        self.owed.contains_key(id)
    }

    pub fn len(&self) -> usize {
        self.owed.len()
    }

    pub fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Id, &T)> {
        self.owed.iter()
    }

    pub fn for_each(&mut self, each: impl FnMut(&mut T)) {
        self.owed.values_mut().for_each(each);
    }

    /// The ids of the entries that fit, for settling them one by one.
    pub fn ids_where(&self, fits: impl Fn(&T) -> bool) -> Vec<Id> {
        self.owed.iter().filter(|(_, entry)| fits(entry)).map(|(id, _)| id.clone()).collect()
    }
}
