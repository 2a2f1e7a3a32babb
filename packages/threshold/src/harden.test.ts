import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

const skip = process.platform === 'linux' ? false : 'what became of it is read of /proc'

test('a hardened process leaves no core dump and continues to work', { skip }, () => {
  const script = `
    import { readFileSync } from 'node:fs'
    import { hardenProcess } from '${new URL('./index.ts', import.meta.url).href}'
    const told = hardenProcess()
    const core = /^Max core file size\\s+(\\S+)\\s+(\\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')).slice(1)
    console.log(JSON.stringify({ told, core, again: hardenProcess() }))`
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', script],
    { encoding: 'utf8' },
  )
  assert.equal(status, 0, stderr)
  const done = { attaching: 'done', coreDumps: 'done' }
  assert.deepEqual(JSON.parse(stdout), { told: done, core: ['0', '0'], again: done })
})

test(
  'another process of the same user cannot read the memory of a hardened process',
  { skip },
  () => {
    const parent = `
    import { spawn } from 'node:child_process'
    import { readlinkSync } from 'node:fs'
    const isRoot = process.getuid() === 0
    if (isRoot) { process.setgid(65534); process.setuid(65534) }
    const read = (pid) => { try { return readlinkSync('/proc/' + pid + '/exe') !== '' } catch (error) { return error.code } }
    for (const hardens of [false, true]) {
      const child = spawn(process.execPath, ['--input-type=module', '-e', \`
        const { hardenProcess } = await import('\${process.argv[1]}')
        if (\${hardens}) hardenProcess()
        console.log('ready')
        process.stdin.resume()\`], { stdio: ['pipe', 'pipe', 'inherit'] })
      await new Promise((resolve) => child.stdout.once('data', resolve))
      console.log(hardens + ' ' + read(child.pid))
      child.stdin.end()
    }`
    const index = new URL('./index.ts', import.meta.url).href
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ['--input-type=module', '-e', parent, index],
      { encoding: 'utf8' },
    )
    assert.equal(stdout, 'false true\ntrue EACCES\n', stderr)
  },
)
