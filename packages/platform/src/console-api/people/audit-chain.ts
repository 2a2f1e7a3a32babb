import { createHash } from 'node:crypto'
import { canonicalJson } from '@custody/request-auth'

/**
 * Additional details of an audit line. `details`: strings, integers, true, false, null, and lists
 * and objects of them.
 */
export type Details = {
  [name: string]: string | number | boolean | null | Details | readonly (string | Details)[]
}

/** One line of a workspace's audit log, as exported. */
export interface AuditLine {
  workspace: string
  seq: number
  at: string
  actor: { type: 'person' | 'api_user' | 'operator'; id: string | null; name: string }
  session: string | null
  ip: string | null
  action: string
  object: string | null
  details: Details
  prev_hash: string
  hash: string
}

/** Previous hash of the first line. */
export const FIRST_HASH = '0'.repeat(64)

/** Returns the hexadecimal SHA-256 of a line's canonical JSON (RFC 8785) without its own hash. */
export const hashOfLine = (line: Omit<AuditLine, 'hash'>): string =>
  createHash('sha256')
    .update(canonicalJson({ ...line, hash: undefined }))
    .digest('hex')

/** Last line of an export. It shows that the export was not cut off. */
export interface AuditEnd {
  end: { workspace: string; seq: number; hash: string }
}

/** Describes a fault of an exported log, with the number of its line in the file. */
export class BrokenLog extends Error {
  constructor(at: number, message: string) {
    super(`line ${at}: ${message}`)
    this.name = 'BrokenLog'
  }
}

/**
 * Returns why a line cannot be the next one after another line; null if it is.
 * @param last number and hash of the other line; 0 and {@link FIRST_HASH} before the first one
 */
export function faultAfter(last: { seq: number; hash: string }, line: AuditLine): string | null {
  if (line.seq !== last.seq + 1) return `has number ${line.seq}, but ${last.seq + 1} is expected`
  if (line.prev_hash !== last.hash) return `number ${line.seq} is not chained to the previous line`
  if (hashOfLine(line) !== line.hash)
    return `number ${line.seq} was changed: its hash does not match`
  return null
}

const NAMES = [
  'workspace',
  'seq',
  'at',
  'actor',
  'session',
  'ip',
  'action',
  'object',
  'details',
  'prev_hash',
  'hash',
]

/**
 * Verifies an exported log: that no line was changed, removed, added or moved, from the first line
 * to the end.
 * @param lines lines of the file
 * @param head a hash that was noted earlier; the log must still contain its line. Only this detects
 *   a log that was rewritten completely.
 * @returns the number of lines and the newest hash
 * @throws BrokenLog
 */
export async function verifyLog(
  lines: AsyncIterable<string> | Iterable<string>,
  head: string | null = null,
): Promise<{ lines: number; hash: string; workspace: string | null }> {
  let [at, seq, hash] = [0, 0, FIRST_HASH]
  let [workspace, ended, isHeadFound]: [string | null, boolean, boolean] = [
    null,
    false,
    head === null || head === FIRST_HASH,
  ]
  for await (const text of lines) {
    at++
    if (text.trim() === '') continue
    if (ended) throw new BrokenLog(at, 'is after the end of the log')
    const line = parse(text, at)
    if ('end' in line) {
      const { end } = line
      if (end.seq !== seq || end.hash !== hash)
        throw new BrokenLog(at, `the log ends with line ${end.seq}, but here it ends with ${seq}`)
      workspace ??= end.workspace
      if (end.workspace !== workspace)
        throw new BrokenLog(at, 'is the end of another workspace’s log')
      ended = true
      continue
    }
    workspace ??= line.workspace
    if (line.workspace !== workspace) throw new BrokenLog(at, 'belongs to another workspace')
    const fault = faultAfter({ seq, hash }, line)
    if (fault !== null) throw new BrokenLog(at, fault)
    ;({ seq, hash } = line)
    isHeadFound ||= hash === head
  }
  if (!ended) throw new BrokenLog(at + 1, 'the log has no end: it was truncated')
  if (!isHeadFound) throw new BrokenLog(at, 'no line has the noted hash: this is another log')
  return { lines: seq, hash, workspace }
}

function parse(text: string, at: number): AuditLine | AuditEnd {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new BrokenLog(at, 'is not JSON')
  }
  if (typeof value !== 'object' || value === null)
    throw new BrokenLog(at, 'is not a line of an audit log')
  const names = Object.keys(value)
  const end = (value as Partial<AuditEnd>).end
  if (names.length === 1 && typeof end === 'object' && end !== null) return value as AuditEnd
  if (names.length === NAMES.length && NAMES.every((name) => names.includes(name)))
    return value as AuditLine
  throw new BrokenLog(at, 'is not a line of an audit log')
}
