import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { installToy } from '../testing/toy-dependency.ts'

/** Versions of npm that come with Node 20 and 22, and with Node 24. */
const VERSIONS = ['10.9.4', '11.6.2']
const folder = mkdtempSync(join(tmpdir(), 'custody-npm-'))
after(() => rmSync(folder, { recursive: true, force: true }))

for (const version of VERSIONS) {
  test(`npm ${version} runs no install script of a dependency`, (t) => {
    const prefix = join(folder, version)
    const { status, stderr } = spawnSync(
      'npm',
      ['install', '--prefix', prefix, '--ignore-scripts', '--no-audit', `npm@${version}`],
      { encoding: 'utf8', cwd: folder },
    )
    if (status !== 0) return t.skip(`npm ${version} cannot be downloaded: ${stderr.trim()}`)
    const npm = [process.execPath, join(prefix, 'node_modules/npm/bin/npm-cli.js')]
    assert.deepEqual(installToy(npm), [[], []])
    // The same installation without the setting: the scripts of the toy do work.
    for (const ran of installToy(npm, ['--ignore-scripts=false']))
      assert.deepEqual(ran, ['preinstall', 'install', 'postinstall'])
  })
}
