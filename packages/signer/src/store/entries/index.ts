import { z } from 'zod'
import { RecordError } from './error.ts'
import { GOVERNANCE } from './governance.ts'
import { importedSchema } from './imported.ts'
import { KEYS } from './keys.ts'
import { PEOPLE } from './people.ts'
import { TRANSACTIONS } from './transactions.ts'

/** Schemas of all kinds of entries in a record. Other kinds are neither written nor read. */
export const BODIES = {
  ...PEOPLE,
  ...KEYS,
  ...TRANSACTIONS,
  ...GOVERNANCE,
  imported: importedSchema,
}

export type Kind = keyof typeof BODIES
export type Body<K extends Kind> = z.output<(typeof BODIES)[K]>
/** An entry to be written. */
export type NewEntry<K extends Kind = Kind> = { [Each in K]: { kind: Each; body: Body<Each> } }[K]
/** An entry of the record; `at` in Unix ms. */
export type Entry<K extends Kind = Kind> = {
  [Each in K]: { height: number; at: number; kind: Each; body: Body<Each> }
}[K]
/** An entry in the form in which it is stored and hashed, before validation. */
export interface Row {
  height: number
  at: number
  kind: string
  body: string
  hash: string
}

const isKind = (kind: string): kind is Kind => Object.hasOwn(BODIES, kind)

function issueOf(error: z.ZodError): string {
  const [issue] = error.issues
  return `${issue?.path.join('.') || 'the body'}: ${issue?.message ?? 'has an unknown format'}`.slice(
    0,
    300,
  )
}

/**
 * Parses the stored text of an entry. Every read and write of the record uses this function,
 * because an entry that is skipped could be a step, a void or a revocation that this node would
 * then ignore.
 * @throws RecordError that names height and kind, if the kind is unknown or the body does not match
 *   it
 */
export function entryOf({ height, at, kind, body: text }: Omit<Row, 'hash'>): Entry {
  const named = JSON.stringify(kind.slice(0, 40))
  if (!isKind(kind)) {
    throw new RecordError(
      `The record's entry ${height} has the kind ${named}, which this version does not know: it may have been written by a later version`,
    )
  }
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw new RecordError(`The record's entry ${height} of the kind ${named} is not JSON`)
  }
  const parsed = BODIES[kind].safeParse(body)
  if (!parsed.success) {
    throw new RecordError(
      `The record's entry ${height} of the kind ${named} does not match the format of its kind: ${issueOf(parsed.error)}`,
    )
  }
  return { height, at, kind, body: parsed.data } as Entry
}
