import { z } from 'zod'
import { RecordError } from './error.ts'
import { importedSchema } from './imported.ts'
import { KEYS } from './keys.ts'
import { PEOPLE } from './people.ts'
import { TRANSACTIONS } from './transactions.ts'

/**
 * Every kind of entry that a record may hold, and what its body is. What is not here is neither
 * written nor read.
 */
export const BODIES = { ...PEOPLE, ...KEYS, ...TRANSACTIONS, imported: importedSchema }

export type Kind = keyof typeof BODIES
export type Body<K extends Kind> = z.output<(typeof BODIES)[K]>
/** What is to be written. */
export type NewEntry<K extends Kind = Kind> = { [Each in K]: { kind: Each; body: Body<Each> } }[K]
/** What stands in the record; `at` in Unix ms. */
export type Entry<K extends Kind = Kind> = {
  [Each in K]: { height: number; at: number; kind: Each; body: Body<Each> }
}[K]
/** An entry as its bytes are kept and hashed: nothing of it is checked yet. */
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
 * An entry from its kept text: the one way in and out of the record. An entry that is skipped could
 * be a step, a void or a revocation that this node no longer holds to.
 * @throws RecordError that names height and kind, where the kind is unknown or the body is not
 *   its kind's
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
