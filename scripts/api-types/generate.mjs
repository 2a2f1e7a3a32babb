// Generates TypeScript types of an OpenAPI document. Decimals are texts with exactly their digits,
// as the client returns and accepts them.
import openapiTypescript, { astToString } from 'openapi-typescript'
import ts from 'typescript'

const reference = (name) => ts.factory.createTypeReferenceNode(ts.factory.createIdentifier(name))
const NULL = ts.factory.createLiteralTypeNode(ts.factory.createNull())

/** Replaces numbers with a decimal format by `Decimal`, with `null` added if it is allowed. */
function transform(schema) {
  if (schema.format !== 'decimal') return undefined
  const isNullable = Array.isArray(schema.type) && schema.type.includes('null')
  return isNullable
    ? ts.factory.createUnionTypeNode([reference('Decimal'), NULL])
    : reference('Decimal')
}

/**
 * Returns the parts of the document that determine the types: without examples and headers, and
 * only the successful responses.
 */
function slim({ paths, components, ...document }) {
  const operation = ({ responses, requestBody, parameters, ...rest }) => ({
    ...rest,
    ...(parameters
      ? { parameters: parameters.map((each) => ({ ...each, example: undefined })) }
      : {}),
    ...(requestBody ? { requestBody: plain(requestBody) } : {}),
    responses: { 200: plain(responses[200]) },
  })
  return {
    ...document,
    webhooks: {},
    paths: Object.fromEntries(
      Object.entries(paths).map(([path, methods]) => [
        path,
        Object.fromEntries(
          Object.entries(methods).map(([method, each]) => [method, operation(each)]),
        ),
      ]),
    ),
    components: { schemas: components.schemas },
  }
}

function plain({ content, description }) {
  const media = Object.entries(content ?? {}).map(([type, { schema }]) => [type, { schema }])
  return { description, content: Object.fromEntries(media) }
}

const LEFT_OUT = new Set(['paths', 'webhooks', '$defs'])

/**
 * @param document an OpenAPI 3.1 document, parsed
 * @returns the text of a module: `components`, `operations`, and a name for each schema
 */
export async function generateTypes(document) {
  const nodes = await openapiTypescript(slim(document), {
    transform,
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
    silent: true,
  })
  const text = astToString(nodes.filter(({ name }) => !LEFT_OUT.has(name?.text)))
  const decimal =
    '/** Digits with a decimal point at most, such as `0.5`: a double cannot hold 18 decimals. */\nexport type Decimal = string;\n'
  return `${decimal}${text.replaceAll(/^ +(?:header|cookie|path|query)\?: never;\n/gm, '')}`
}
