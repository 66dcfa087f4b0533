//! Which extensions a hub of several servers offers: those whose methods it can route. A single server offers its own.

use super::Server;
use super::upstream::Upstream;
use crate::Object;
use crate::object::quoted;

/// Apps: tools and resources, so all of its methods are routed by name and address.
const UI: &str = "io.modelcontextprotocol/ui";
/// A task id does not say whose it is.
const TASKS: &str = "io.modelcontextprotocol/tasks";
const TASKS_METHODS: &str = "tasks/";
const SKILLS: &str = "io.modelcontextprotocol/skills";
const SKILLS_METHODS: [&str; 3] = ["skills/list", "skills/get", "resources/directory/read"];

/// The capabilities that hold extensions.
const HOLDERS: [&str; 2] = ["extensions", "experimental"];

#[derive(Debug, Default)]
pub(super) struct Extensions {
    offered: Vec<Declared>,
    skills: Option<Server>,
    /// Who gets the methods that no extension known here has.
    others: Option<Server>,
}

/// An extension, and who declares it.
#[derive(Debug)]
struct Declared {
    holder: &'static str,
    name: String,
    /// As the first of the servers declares it.
    value: String,
    by: Vec<Server>,
}

impl Declared {
    fn only(&self) -> Option<Server> {
        self.by.first().copied().filter(|_| self.by.len() == 1)
    }

    fn is_unknown(&self) -> bool {
        ![UI, TASKS, SKILLS].contains(&self.name.as_str())
    }
}

impl Extensions {
    pub(super) fn new(upstreams: &[Upstream]) -> Extensions {
        let declared = declared(upstreams);
        let skills = declared.iter().find(|extension| extension.name == SKILLS).and_then(Declared::only);
        // The names of methods do not say which extension they belong to: only one server can have such.
        let mut owners: Vec<Server> =
            declared.iter().filter(|extension| extension.is_unknown()).filter_map(Declared::only).collect();
        owners.dedup();
        let others = owners.first().copied().filter(|_| owners.len() == 1);
        let routed = |extension: &Declared| match extension.name.as_str() {
            UI => true,
            TASKS => false,
            SKILLS => skills.is_some(),
            _ => others.is_some() && extension.only() == others,
        };
        Extensions { offered: declared.into_iter().filter(routed).collect(), skills, others }
    }

    /// The server that has a method which is not one of the protocol itself.
    pub(super) fn owner(&self, method: &str) -> Option<Server> {
        match method {
            method if SKILLS_METHODS.contains(&method) => self.skills,
            method if method.starts_with(TASKS_METHODS) => None,
            _ => self.others,
        }
    }

    /// Adds the extensions to the capabilities of the hub.
    pub(super) fn add_to(&self, capabilities: &mut Object<'_>) {
        for holder in HOLDERS {
            let members = self.offered.iter().filter(|extension| extension.holder == holder);
            let members: Vec<String> =
                members.map(|extension| format!("{}:{}", quoted(&extension.name), extension.value)).collect();
            if !members.is_empty() {
                capabilities.set(holder, format!("{{{}}}", members.join(",")));
            }
        }
    }
}

fn declared(upstreams: &[Upstream]) -> Vec<Declared> {
    let mut all: Vec<Declared> = Vec::new();
    for upstream in upstreams {
        let catalogue = upstream.catalogue.as_ref();
        let Some(told) = catalogue.and_then(|catalogue| Object::parse(catalogue.capabilities.as_deref()?)) else {
            continue;
        };
        for holder in HOLDERS {
            let Some(members) = told.object(holder) else { continue };
            for (name, value) in members.iter() {
                match all.iter_mut().find(|known| known.holder == holder && known.name == name) {
                    Some(known) => known.by.push(upstream.server),
                    None => {
                        let (name, value, by) = (name.to_owned(), value.to_owned(), vec![upstream.server]);
                        all.push(Declared { holder, name, value, by });
                    }
                }
            }
        }
    }
    all
}
