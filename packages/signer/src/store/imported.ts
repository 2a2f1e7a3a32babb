import type { z } from 'zod'
import { entryOf, type Body, type Row } from './entries/index.ts'
import { RecordError } from './entries/error.ts'
import { IMPORTED, type ImportedKind } from './entries/imported.ts'

const isImported = (kind: string): kind is ImportedKind => Object.hasOwn(IMPORTED, kind)

/** Returns the part of a peer's entry that binds this node too; null if it does not match. */
export function importable<K extends ImportedKind>(
  kind: K,
  body: unknown,
): z.output<(typeof IMPORTED)[K]> | null {
  const parsed = IMPORTED[kind].safeParse(body)
  return parsed.success ? (parsed.data as z.output<(typeof IMPORTED)[K]>) : null
}

/**
 * Returns the data of a peer's row that a restored node records; null if the row's kind binds only
 * the peer. No other row may be left out, because the node could sign against an entry that it does
 * not have.
 * @throws RecordError that names height and kind
 */
export function takenFrom(peer: number, row: Row): Body<'imported'> | null {
  const entry = entryOf(row)
  const { at, kind, body } = entry.kind === 'imported' ? entry.body : entry
  if (!isImported(kind)) return null
  const taken = importable(kind, body)
  if (taken === null || !Number.isSafeInteger(at)) {
    throw new RecordError(
      `The record's entry ${row.height} has the kind "${kind}", which is not imported from a peer`,
    )
  }
  return { at, kind, body: taken, from: peer } as Body<'imported'>
}
