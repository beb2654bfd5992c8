import type { CreateDocumentOptions, oas31 } from 'zod-openapi';

/**
 * Query parameters are strings until parsed. What is described as a number must not keep the pattern of its text, and
 * a default, which stands behind the parsing, would not be shown at all. The largest exact integer is no limit of ours.
 */
export const override: CreateDocumentOptions['override'] = ({ jsonSchema, zodSchema, io }) => {
  const { def } = zodSchema._zod;
  if (jsonSchema.type === 'integer' || jsonSchema.type === 'number') delete jsonSchema.pattern;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (def.type === 'default' && io === 'input') jsonSchema.default = def.defaultValue;
};

/** The same document, written the way tools show best. */
export const polish = (document: oas31.OpenAPIObject): oas31.OpenAPIObject =>
  JSON.parse(JSON.stringify(document), (_key, node: unknown) => {
    if (!isObject(node)) return node;
    return 'in' in node && isObject(node.schema) ? describeParameter(node, node.schema) : mergeNull(node);
  });

type Node = Record<string, unknown>;
const isObject = (node: unknown): node is Node => typeof node === 'object' && node !== null && !Array.isArray(node);

/** What describes a parameter belongs to the parameter, not to its schema. */
function describeParameter({ schema: _, ...parameter }: Node, { description, examples, ...schema }: Node): Node {
  const example = Array.isArray(examples) && { example: examples[0] };
  return { ...parameter, ...(description !== undefined && { description }), ...example, schema };
}

/** `anyOf: [schema, null]` is one schema of two types. */
function mergeNull({ anyOf, ...outer }: Node): Node {
  if (!Array.isArray(anyOf)) return outer;
  const [inner, ...others] = anyOf as Node[];
  const mergeable = typeof inner?.type === 'string' && others.length === 1 && others[0]?.type === 'null';
  if (!mergeable) return { ...outer, anyOf };
  const choices = Array.isArray(inner.enum) && { enum: [...inner.enum, null] };
  return { ...inner, ...outer, type: [inner.type, 'null'], ...choices };
}
