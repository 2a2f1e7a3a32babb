import { HANG_MS } from '../../../../testing/wait-for.ts'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Hosts for the commands of the pages about production, all in the network namespace of this
 * process. Each host has a root folder instead of `/`, a bundle in its `/opt`, and a PATH with the
 * programs of the operating system but without Node and npm.
 */

/** Folders in the pages that are placed below a host's root. */
const PLACES =
  /(?<![\w.$/}])\/(?=(?:opt|usr\/local\/bin|var\/lib\/custody|etc\/custody|backups)\b)/g

/**
 * Creates a folder with a link to each program of the operating system, except those that a bundle
 * must not need.
 */
export function systemPrograms(folder: string): string {
  const to = join(folder, 'programs')
  mkdirSync(to)
  for (const from of ['/usr/sbin', '/usr/bin', '/sbin', '/bin']) {
    for (const name of readdirSync(from)) {
      if (/^(?:node|nodejs|npm|npx|corepack|yarn|custody)$/.test(name)) continue
      if (lstatSync(join(to, name), { throwIfNoEntry: false }) === undefined)
        symlinkSync(join(from, name), join(to, name))
    }
  }
  return to
}

export class ProductionHost {
  readonly name: string
  readonly root: string
  /** Environment variables that the operator sets. */
  readonly env: Record<string, string> = {}
  readonly #programs: string
  readonly #running = new Set<ChildProcess>()
  #log = ''

  /**
   * Creates the folders of a host.
   * @param bundle the unpacked bundle, which is in the host's `/opt` as version 1 and version 2
   */
  constructor(folder: string, programs: string, name: string, bundle: string) {
    this.name = name
    this.root = mkdtempSync(join(folder, `${name}-`))
    this.#programs = programs
    for (const path of [
      'work',
      'opt',
      'usr/local/bin',
      'var/lib',
      'etc/custody',
      'etc/custody-signer',
      'backups',
    ])
      mkdirSync(this.path(path), { recursive: true, mode: 0o700 })
    for (const version of ['1', '2']) symlinkSync(bundle, this.path(`opt/custody-${version}`))
  }

  path(...names: string[]): string {
    return join(this.root, ...names)
  }
  /** Returns the path of a file in the operator's working directory. */
  work(name: string): string {
    return this.path('work', name)
  }

  write(path: string, text: string): void {
    writeFileSync(this.path(path), text, { mode: 0o600 })
  }

  #spawn(text: string): ChildProcess {
    return spawn('sh', ['-eu', '-c', text.replaceAll(PLACES, `${this.root}/`)], {
      cwd: this.path('work'),
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: `${this.path('usr/local/bin')}:${this.#programs}`,
        HOME: this.root,
        TMPDIR: tmpdir(),
        ...this.env,
      },
    })
  }

  /**
   * Runs commands until they end.
   * @returns their output
   * @throws Error with their output if the exit code is not the expected one
   */
  async run(text: string, expected = 0): Promise<string> {
    const child = this.#spawn(text)
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (part: string) => {
        said += part
      })
    const timer = setTimeout(() => child.kill('SIGKILL'), HANG_MS)
    const status = await new Promise<number | null>((resolve) => {
      child.once('close', resolve)
    })
    clearTimeout(timer)
    if (status !== expected)
      throw new Error(
        `${this.name}: exit code ${String(status)} rather than ${expected} of\n${text}\n${said}`,
      )
    return said
  }

  /**
   * Starts a long-running command as a systemd unit would: the last command replaces the shell.
   * Resolves once the process reports that it is ready.
   */
  async start(text: string): Promise<void> {
    const lines = text.trim().split('\n')
    const child = this.#spawn([...lines.slice(0, -1), `exec ${lines.at(-1) as string}`].join('\n'))
    this.#running.add(child)
    this.#log = ''
    await new Promise<void>((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        stream?.setEncoding('utf8').on('data', (part: string) => {
          this.#log = (this.#log + part).slice(-20_000)
          if (/^(?:signer \d )?ready http/m.test(this.#log)) resolve()
        })
      }
      child.once('exit', (code, signal) => {
        this.#running.delete(child)
        reject(new Error(`${this.name}: ended (${String(signal ?? code)}):\n${text}\n${this.#log}`))
      })
    })
  }

  /** Paths of the executables of the processes on this host. */
  get executables(): string[] {
    return [...this.#running].map(({ pid }) => readlinkSync(`/proc/${String(pid)}/exe`))
  }

  get lastLines(): string {
    return `--- ${this.name}\n${this.#log.trim().split('\n').slice(-8).join('\n')}`
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await Promise.all(
      [...this.#running].map(
        (child) =>
          new Promise<void>((resolve) => {
            child.once('exit', () => resolve())
            child.kill(signal)
          }),
      ),
    )
  }

  /** Simulates the complete loss of the host. */
  async lose(): Promise<void> {
    await this.stop('SIGKILL')
    rmSync(this.root, { recursive: true, force: true })
  }
}

/** Returns why the commands of the pages cannot be run here, or null if they can. */
export function whyNoProduction(): string | null {
  if (process.platform !== 'linux') return 'network namespaces are Linux’s'
  if (process.getuid?.() !== 0) return 'an empty network namespace needs root'
  const made = spawnSync('unshare', ['--net', 'sh', '-c', 'ip link set lo up'], {
    encoding: 'utf8',
  })
  if (made.error || made.status !== 0)
    return `unshare --net is not permitted: ${(made.error?.message ?? made.stderr).trim()}`
  return null
}
