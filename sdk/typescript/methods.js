// Methods of the rows in api.js.

// Gives an object one method for each row, by its noun. Those of the noun own are the object's
// themselves. make returns what does a row's call.
export function bind(target, rows, own, make) {
  for (const [name, row] of Object.entries(rows)) {
    const [noun, verb] = name.split(".");
    const methods = noun === own ? target : (target[noun] ??= {});
    const call = make(name, row);
    methods[camel(verb)] = call;
    if (row.parts) methods[camel(verb) + "All"] = (params, options) => all(call, row.parts, params, options);
  }
}

// A name as JavaScript has it: copyIn of copy_in.
function camel(name) {
  return name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
}

// The items of all parts of a list. A part names the next one.
async function* all(call, list, params, options) {
  for (;;) {
    const part = await call(params, options);
    yield* part[list];
    if (!part.next) return;
    params = { ...params, after: part.next };
  }
}

// An answer with its lists: an empty one may have come as null.
export function answerOf(row, result) {
  for (const list of row?.lists ?? []) result[list] ??= [];
  return result;
}
