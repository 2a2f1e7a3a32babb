import assert from 'node:assert/strict'
import { spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Folder of the systemd unit files, which this module reads and runs without systemd. */
export const UNITS = fileURLToPath(new URL('../../../../deploy/systemd/', import.meta.url))
const CLI = fileURLToPath(new URL('../../bin/custody.mjs', import.meta.url))

/** Returns the values of a setting of a unit, such as `ExecStart`, in order. */
export function settingsOf(unit: string, name: string): string[] {
  const text = readFileSync(join(UNITS, unit), 'utf8')
  return [...text.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value as string)
}

/**
 * Runs a unit's command in a shell, split and expanded as systemd would do it.
 * @param places replacement of each path or specifier of the unit, such as `/backups` or `%S`
 */
export function runUnit(
  unit: string,
  setting: 'ExecStart' | 'ExecStartPre',
  places: Record<string, string>,
  env: NodeJS.ProcessEnv = {},
): SpawnSyncReturns<string> {
  const [line] = settingsOf(unit, setting)
  assert.ok(line !== undefined, `${unit} has no ${setting}`)
  const all: Record<string, string> = {
    ...places,
    '/opt/custody/bin/custody': `${process.execPath} ${CLI}`,
    '%%': '%',
    $$: '$',
  }
  const pattern = new RegExp(
    Object.keys(all)
      .map((each) => each.replace(/[$]/g, String.raw`\$&`))
      .join('|'),
    'g',
  )
  const command = line.replace(/^[+!-]+/, '').replace(pattern, (each) => all[each] as string)
  return spawnSync('/bin/sh', ['-c', command], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], ...env },
  })
}
