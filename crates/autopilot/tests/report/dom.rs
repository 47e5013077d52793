//! A page as a browser's parser sees it.

use html5ever::tendril::TendrilSink;
use html5ever::{ParseOpts, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};

pub struct Dom {
    root: RcDom,
}

pub struct Element(Handle);

impl Dom {
    pub fn parse(text: &str) -> Dom {
        Dom { root: parse_document(RcDom::default(), ParseOpts::default()).one(text) }
    }

    /// What a validator would complain about.
    pub fn errors(&self) -> Vec<String> {
        self.root.errors.borrow().iter().map(ToString::to_string).collect()
    }

    pub fn all(&self, is_wanted: impl Fn(&Element) -> bool) -> Vec<Element> {
        let mut found = Vec::new();
        walk(&self.root.document, &mut |element| {
            if is_wanted(&element) {
                found.push(element);
            }
        });
        found
    }

    pub fn tags(&self, name: &str) -> Vec<Element> {
        self.all(|element| element.name() == name)
    }

    pub fn classes(&self, class: &str) -> Vec<Element> {
        self.all(|element| element.has_class(class))
    }

    #[track_caller]
    pub fn by_id(&self, id: &str) -> Element {
        let mut found = self.all(|element| element.attribute("id").as_deref() == Some(id));
        assert_eq!(found.len(), 1, "elements with id {id}");
        found.remove(0)
    }

    pub fn text(&self) -> String {
        text_of(&self.root.document)
    }
}

impl Element {
    pub fn name(&self) -> String {
        let NodeData::Element { name, .. } = &self.0.data else { return String::new() };
        name.local.to_string()
    }

    pub fn attributes(&self) -> Vec<(String, String)> {
        let NodeData::Element { attrs, .. } = &self.0.data else { return Vec::new() };
        attrs
            .borrow()
            .iter()
            .map(|attribute| (attribute.name.local.to_string(), attribute.value.to_string()))
            .collect()
    }

    pub fn attribute(&self, name: &str) -> Option<String> {
        self.attributes().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    pub fn has_class(&self, class: &str) -> bool {
        self.attribute("class").is_some_and(|all| all.split_whitespace().any(|one| one == class))
    }

    pub fn text(&self) -> String {
        text_of(&self.0)
    }

    pub fn all(&self, is_wanted: impl Fn(&Element) -> bool) -> Vec<Element> {
        let mut found = Vec::new();
        for child in self.0.children.borrow().iter() {
            walk(child, &mut |element| {
                if is_wanted(&element) {
                    found.push(element);
                }
            });
        }
        found
    }

    pub fn classes(&self, class: &str) -> Vec<Element> {
        self.all(|element| element.has_class(class))
    }

    pub fn tags(&self, name: &str) -> Vec<Element> {
        self.all(|element| element.name() == name)
    }
}

fn walk(handle: &Handle, visit: &mut dyn FnMut(Element)) {
    if matches!(handle.data, NodeData::Element { .. }) {
        visit(Element(handle.clone()));
    }
    for child in handle.children.borrow().iter() {
        walk(child, visit);
    }
}

fn text_of(handle: &Handle) -> String {
    let mut text = String::new();
    gather(handle, &mut text);
    text
}

fn gather(handle: &Handle, text: &mut String) {
    if let NodeData::Text { contents } = &handle.data {
        text.push_str(&contents.borrow());
    }
    for child in handle.children.borrow().iter() {
        gather(child, text);
    }
}
