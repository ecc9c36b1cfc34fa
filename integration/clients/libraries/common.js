// What the programs in this folder share. Each asks the same by its library, and prints a
// line for each way to ask; the answers are those of script.yaml.

export const question = { plain: "say hello", tool: "what is the weather in Paris?", error: "too much at once" };

export const parameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

// forecast is the agent's tool.
export const forecast = async ({ city }) => `18 degrees in ${city}`;

// report prints what ask returns, or the error. What a stream yields goes to piece.
export async function report(name, ask) {
  const pieces = [];
  try {
    const said = await ask((piece) => piece && pieces.push(piece));
    const streamed = pieces.length > 1 ? [`${pieces.join("")} (in pieces)`] : pieces;
    console.log(`${name}: ${[...streamed, ...(said ? [said] : [])].join(", ")}`);
  } catch (e) {
    const reason = e.lastError ?? e;
    console.log(`${name}: ${reason.constructor.name} ${reason.status ?? reason.statusCode ?? reason.message}`);
  }
}
