import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

import { openedBy } from './hardening.ts'
import { editConfigs, freePorts, createDataDirs, runNode } from '../testing/data-dirs.ts'
import { HANG_MS } from '../../../testing/wait-for.ts'

const folder = mkdtempSync(join(tmpdir(), 'signer-hardening-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})
const MAIN = join(import.meta.dirname, './main.ts')

async function homeOf(name: string, mode: 'local' | 'mainnet'): Promise<string> {
  const parent = join(folder, name)
  await createDataDirs(parent, await freePorts(3))
  editConfigs(parent, (config) => {
    config.mode = mode
    config.kek = { kind: 'wrapped' }
  })
  return join(parent, 'node-1')
}

test('outside local, refuses each option that enables an inspector', () => {
  for (const argument of [
    '--inspect',
    '--inspect=0',
    '--inspect-brk',
    '--inspect-wait=127.0.0.1:9229',
  ]) {
    assert.match(
      openedBy('mainnet', ['--import', 'x', argument], '') ?? '',
      /inspector is open \(--inspect/,
    )
    assert.match(
      openedBy('mainnet', [], `--max-old-space-size=100 ${argument}`) ?? '',
      /NODE_OPTIONS --inspect/,
    )
    assert.equal(openedBy('local', [argument], argument), null)
  }
  assert.match(openedBy('mainnet', [], '', 'ws://127.0.0.1:9229/x') ?? '', /ws:/)
  assert.equal(openedBy('mainnet', ['--inspect-port=9230'], '--inspect-publish-uid=http'), null)
})

test('a mainnet node does not start with an inspector', async () => {
  const home = await homeOf('mainnet', 'mainnet')
  const run = (args: string[], options = '') =>
    spawnSync(process.execPath, [...args, MAIN, '--home', home], {
      encoding: 'utf8',
      input: '',
      timeout: HANG_MS,
      env: { ...process.env, NODE_OPTIONS: options },
    })
  for (const { status, stderr, stdout } of [run(['--inspect=0']), run([], '--inspect=0')]) {
    assert.equal(status, 1, stderr)
    assert.match(
      stderr,
      /signer: .*an inspector is open \(.*--inspect=0\).*Start the node without it/,
    )
    assert.doesNotMatch(stdout, /ready/)
  }
})

test(
  'a mainnet node opens no inspector on SIGUSR1',
  { skip: process.platform !== 'linux' },
  async () => {
    const script = `
    import { keepInspectorClosed } from '${new URL('./hardening.ts', import.meta.url).href}'
    import inspector from 'node:inspector'
    keepInspectorClosed(process.argv[1], () => {})
    process.kill(process.pid, 'SIGUSR1')
    setTimeout(() => { console.log(inspector.url() ?? 'closed'); process.exit() }, 500)`
    const said = (mode: string) => {
      const { stdout } = spawnSync(
        process.execPath,
        ['--inspect-port=0', '--input-type=module', '-e', script, mode],
        { encoding: 'utf8' },
      )
      return stdout.trim()
    }
    assert.equal(said('mainnet'), 'closed')
    assert.match(said('local'), /^ws:/)
  },
)

test(
  "a node reports its hardening, and the kernel's state matches the report",
  { skip: process.platform !== 'linux' },
  async () => {
    let output = ''
    const child = await runNode(await homeOf('local', 'local'), (text) => {
      output += text
    })
    try {
      const line = output.split('\n').find((each) => each.includes('"hardened"'))
      const { level, attaching, core_dumps } = JSON.parse(line ?? '{}') as Record<string, string>
      assert.deepEqual(
        { level, attaching, core_dumps },
        { level: 'info', attaching: 'done', core_dumps: 'done' },
      )
      // Only root can read the limits of a process that is not dumpable.
      if (process.getuid?.() === 0)
        assert.match(
          readFileSync(`/proc/${child.pid}/limits`, 'utf8'),
          /Max core file size\s+0\s+0/,
        )
      else assert.equal(statSync(`/proc/${child.pid}/environ`).uid, 0)
    } finally {
      const ended = new Promise((resolve) => {
        child.once('exit', resolve)
      })
      child.kill('SIGKILL')
      await ended
    }
  },
)
