//! [`Builtin`]: how a file declares its tool.
//!
//! The argument struct is the schema: serde reads it, schemars describes it, and the doc comment of a field is what the
//! model reads about it. Because the call arrives validated, the function of a tool gets its struct and never JSON.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use hermes_core::{
    Check, Edit, Effect, Example, Expected, JsonMap, StopTurn, Tool, ToolCx, ToolError, ToolName, ToolResult, ToolSpec,
    Touches,
};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

type Answering = Pin<Box<dyn Future<Output = ToolResult> + Send>>;
type Previewing = Pin<Box<dyn Future<Output = Result<Vec<Edit>, String>> + Send>>;
type Editing<A> = Box<dyn Fn(A, ToolCx) -> Previewing + Send + Sync>;
type Running<A> = Box<dyn Fn(A, ToolCx) -> Answering + Send + Sync>;

/// A tool with typed arguments `A`.
pub struct Builtin<A> {
    spec: ToolSpec,
    run: Running<A>,
    edits: Option<Editing<A>>,
    check: Option<Check>,
    touches: fn(&A, &ToolCx) -> Touches,
    headline: fn(&A) -> String,
    examples: Vec<Example>,
    arguments: PhantomData<fn(A)>,
}

impl<A: DeserializeOwned + JsonSchema + Send + 'static> Builtin<A> {
    /// Declares a tool. The build script reads `name` from the source, so it must be a literal.
    pub fn new<F>(name: &'static str, run: fn(A, ToolCx) -> F) -> Self
    where
        F: Future<Output = ToolResult> + Send + 'static,
    {
        Self::running(name, Box::new(move |arguments, cx| Box::pin(run(arguments, cx))))
    }

    /// The same for a function that blocks: it runs on a thread that may. It cannot be dropped half-way, so a long one
    /// has to look at `cx.cancel` now and then.
    pub fn blocking(name: &'static str, run: fn(A, ToolCx) -> ToolResult) -> Self {
        let on_a_thread = move |arguments, cx| -> Answering {
            Box::pin(async move {
                let done = tokio::task::spawn_blocking(move || run(arguments, cx)).await;
                done.unwrap_or_else(|error| match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => Err(ToolError::Stop(StopTurn::Cancelled)),
                })
            })
        };
        Self::running(name, Box::new(on_a_thread))
    }

    fn running(name: &'static str, run: Running<A>) -> Self {
        // The build script refuses names that are no tool names.
        #[expect(clippy::expect_used, reason = "checked when this crate was built")]
        let name = ToolName::new(name).expect("the build script checked the name");
        Self {
            spec: ToolSpec::new(name, schema_of::<A>()),
            run,
            edits: None,
            check: None,
            touches: |_, _| Touches::nothing(),
            headline: |_| String::new(),
            examples: Vec::new(),
            arguments: PhantomData,
        }
    }

    /// Names that other agents have for such a tool, in `snake_case`. They are only ever offered, never run.
    #[must_use]
    pub fn also_known_as(mut self, names: &[&str]) -> Self {
        self.spec.also_known_as = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// The set it belongs to.
    #[must_use]
    pub fn toolset(mut self, toolset: &str) -> Self {
        self.spec.toolset = toolset.into();
        self
    }

    /// Shown beside each call.
    #[must_use]
    pub fn emoji(mut self, emoji: &str) -> Self {
        self.spec.emoji = emoji.into();
        self
    }

    /// The strongest thing it does.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.spec.effect = effect;
        self
    }

    /// One paragraph for the model.
    #[must_use]
    pub fn about(mut self, about: &str) -> Self {
        self.spec.description = about.into();
        self
    }

    /// Calls may run beside other calls.
    #[must_use]
    pub fn parallel(mut self) -> Self {
        self.spec.parallel = true;
        self
    }

    /// How long a call may take, where that is not five minutes.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.spec.deadline = Some(deadline);
        self
    }

    /// The result is never stored and previewed; the tool limits it by itself.
    #[must_use]
    pub fn limits_itself(mut self) -> Self {
        self.spec.max_result_chars = None;
        self
    }

    /// What an editor shows before a call changes files; needed by every tool whose calls touch files to write.
    #[must_use]
    pub fn edits<F>(mut self, edits: fn(A, ToolCx) -> F) -> Self
    where
        F: Future<Output = Result<Vec<Edit>, String>> + Send + 'static,
    {
        self.edits = Some(Box::new(move |arguments, cx| Box::pin(edits(arguments, cx))));
        self
    }

    /// Who is asked whether it can be used here.
    #[must_use]
    pub fn check(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// What a call would do. Without this, a call touches nothing.
    #[must_use]
    pub fn touches(mut self, touches: fn(&A, &ToolCx) -> Touches) -> Self {
        self.touches = touches;
        self
    }

    /// A call in a few words for people.
    #[must_use]
    pub fn headline(mut self, headline: fn(&A) -> String) -> Self {
        self.headline = headline;
        self
    }

    /// A call that shows how it is used, and is run as a test in a folder with the file `notes.txt` (three lines:
    /// one, two, three).
    #[must_use]
    pub fn example(mut self, arguments: &'static str, expected: Expected) -> Self {
        self.examples.push(Example { arguments, expected });
        self
    }

    fn typed(&self, arguments: JsonMap) -> Result<A, ToolError> {
        serde_json::from_value(Value::Object(arguments))
            .map_err(|error| ToolError::tell(format!("{}: {error}; nothing was run", self.spec.name)))
    }
}

/// The example answers with at least these fields.
pub fn gives(fields: &'static str) -> Expected {
    Expected::Fields(fields)
}

/// The example answers with an error that contains this.
pub fn fails(error: &'static str) -> Expected {
    Expected::Error(error)
}

#[async_trait]
impl<A: DeserializeOwned + JsonSchema + Send + 'static> Tool for Builtin<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self) -> Option<&Check> {
        self.check.as_ref()
    }

    async fn edits(&self, arguments: &JsonMap, cx: &ToolCx) -> Result<Vec<Edit>, String> {
        let Some(edits) = &self.edits else { return Err(format!("{} cannot show its changes", self.spec.name)) };
        let arguments = self.typed(arguments.clone()).map_err(|error| error.to_string())?;
        edits(arguments, cx.clone()).await
    }

    fn touches(&self, arguments: &JsonMap, cx: &ToolCx) -> Touches {
        // Arguments that the struct refuses never reach `run`, so they touch nothing.
        self.typed(arguments.clone()).map(|arguments| (self.touches)(&arguments, cx)).unwrap_or_default()
    }

    fn examples(&self) -> &[Example] {
        &self.examples
    }

    fn headline(&self, arguments: &JsonMap) -> String {
        self.typed(arguments.clone()).map(|arguments| (self.headline)(&arguments)).unwrap_or_default()
    }

    async fn call(&self, arguments: JsonMap, cx: ToolCx) -> ToolResult {
        (self.run)(self.typed(arguments)?, cx).await
    }
}

/// The JSON Schema of `A`, without what only costs tokens: titles, number formats, "or null" for what may be left out.
fn schema_of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    slim(&mut schema);
    if let Some(root) = schema.as_object_mut() {
        root.shift_remove("description");
        root.entry("properties").or_insert_with(|| Value::Object(JsonMap::new()));
    }
    schema
}

fn slim(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for noise in ["title", "format", "default"] {
                // A property may itself be called `title`: then it is a schema, not a text.
                if map.get(noise).is_some_and(|value| !value.is_object()) {
                    map.shift_remove(noise);
                }
            }
            if let Some(Value::Array(kinds)) = map.get_mut("type") {
                kinds.retain(|kind| kind != "null");
                if let [only] = kinds.as_slice() {
                    let only = only.clone();
                    map.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(options)) = map.get_mut("enum") {
                options.retain(|option| !option.is_null());
            }
            map.values_mut().for_each(slim);
        }
        Value::Array(items) => items.iter_mut().for_each(slim),
        _ => {}
    }
}

impl<A> fmt::Debug for Builtin<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Builtin({})", self.spec.name)
    }
}
