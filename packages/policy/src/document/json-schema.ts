import { z } from 'zod'
import { policyDocument } from './shape.ts'

/**
 * Returns the JSON Schema (draft 2020-12) of a policy document, generated from the schema by which
 * documents are read. It states shape and bounds. It does not state what two fields must have in
 * common, for example that each named group exists.
 */
export function documentJsonSchema(): Record<string, unknown> {
  const { $schema: _, ...schema } = z.toJSONSchema(policyDocument, {
    io: 'input',
    unrepresentable: 'any',
    target: 'draft-2020-12',
  })
  return schema
}
