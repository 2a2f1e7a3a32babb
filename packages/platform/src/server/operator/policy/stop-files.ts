import { readSigned, statementHash, type StatementOf } from '@custody/policy'
import { join } from 'node:path'
import { OperatorError } from '../command.ts'
import { judged, readJsonObject, writeAtomically } from './files.ts'

/**
 * A signed stop with the approvals of its end that were collected so far. The file is also an item
 * for "signer policy present".
 */
export interface StopFile {
  path: string
  workspace: string
  /** Signed statements, as JSON texts. */
  stop: string
  approvals: string[]
}

/** Returns the default file of a stop. */
export const stopFileOf = (home: string, hash: string): string =>
  join(home, 'policy-stops', `${hash}.json`)

export function writeStopFile({ path, ...file }: StopFile): void {
  writeAtomically(path, { kind: 'resumed', ...file })
}

/** Reads the file of a stop. @throws OperatorError that names `--file` */
export function readStopFile(
  path: string,
): StopFile & { statement: StatementOf<'stop'>; hash: string } {
  const value = readJsonObject(path, '--file')
  const { kind, workspace, stop, approvals } = value
  if (
    kind !== 'resumed' ||
    typeof workspace !== 'string' ||
    typeof stop !== 'string' ||
    !Array.isArray(approvals) ||
    !approvals.every((each): each is string => typeof each === 'string')
  )
    throw new OperatorError(`--file: ${path} is not a file that "policy stop" wrote`)
  const { statement } = judged('--file: stop', () => readSigned(stop))
  for (const [at, each] of approvals.entries())
    judged(`--file: approvals[${at}]`, () => readSigned(each))
  if (statement.kind !== 'stop')
    throw new OperatorError(
      `--file: stop: must be a statement of the kind stop, and is ${statement.kind}`,
    )
  return { path, workspace, stop, approvals, statement, hash: statementHash(statement) }
}
