import type { z } from 'zod'
import { entryOf, type Body, type Row } from './entries/index.ts'
import { RecordError } from './entries/error.ts'
import { IMPORTED, type ImportedKind } from './entries/imported.ts'

const isImported = (kind: string): kind is ImportedKind => Object.hasOwn(IMPORTED, kind)

/** The part of a peer's entry that binds this node too; null where that does not fit. */
export function importable<K extends ImportedKind>(
  kind: K,
  body: unknown,
): z.output<(typeof IMPORTED)[K]> | null {
  const parsed = IMPORTED[kind].safeParse(body)
  return parsed.success ? (parsed.data as z.output<(typeof IMPORTED)[K]>) : null
}

/**
 * What a restored node writes down of a peer's row, or null where it is of a kind that binds the
 * peer alone. Nothing else is left out: what it does not take, it may sign against.
 * @throws RecordError that names height and kind
 */
export function takenFrom(peer: number, row: Row): Body<'imported'> | null {
  const entry = entryOf(row)
  const { at, kind, body } = entry.kind === 'imported' ? entry.body : entry
  if (!isImported(kind)) return null
  const taken = importable(kind, body)
  if (taken === null || !Number.isSafeInteger(at)) {
    throw new RecordError(
      `The record's entry ${row.height} of the kind "${kind}" is beyond what is taken from a peer`,
    )
  }
  return { at, kind, body: taken, from: peer } as Body<'imported'>
}
