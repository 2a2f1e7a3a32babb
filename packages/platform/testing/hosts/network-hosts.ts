import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Hosts for a test: Linux network namespaces, each with an address on a bridge. The bridge is in a
 * namespace too, so this machine's own network is not changed. Processes run in them by `ip netns
 * exec`, and each host has a folder of its own.
 */

const TREE = fileURLToPath(new URL('../../../../', import.meta.url))
const PREFIX = '10.88.7'
/**
 * Command prefix that ends a child process when its parent ends, even if the test is killed. A
 * program that changes its user must set this again.
 */
export const DIES_WITH_US = ['setpriv', '--pdeathsig', 'KILL']

/** Returns why network namespaces cannot be used here, or null if they can. */
export function whyNoHosts(): string | null {
  if (process.platform !== 'linux') return 'network namespaces are Linux’s'
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  const name = `cu${randomBytes(3).toString('hex')}-try`
  const made = spawnSync('ip', ['netns', 'add', name], { encoding: 'utf8' })
  if (made.error || made.status !== 0)
    return `no network namespaces: ${made.error ? 'there is no ip (Debian: iproute2)' : made.stderr.trim()}`
  const bridge = spawnSync('ip', ['-n', name, 'link', 'add', 'br0', 'type', 'bridge'], {
    encoding: 'utf8',
  })
  spawnSync('ip', ['netns', 'del', name])
  return bridge.status === 0 ? null : `no bridges: ${bridge.stderr.trim()}`
}

function ip(...args: string[]): void {
  const { status, stderr } = spawnSync('ip', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr.trim()}`)
}

/** A host: a network namespace, an address and a folder. */
export class Host {
  readonly name: string
  readonly address: string
  readonly home: string
  /** Name of the host's network namespace. */
  readonly space: string
  readonly #children = new Set<ChildProcess>()

  constructor(name: string, space: string, address: string, home: string) {
    this.name = name
    this.space = space
    this.address = address
    this.home = home
    mkdirSync(home, { recursive: true, mode: 0o700 })
  }

  path(...names: string[]): string {
    return join(this.home, ...names)
  }
  get logFile(): string {
    return this.path('log')
  }

  #spawn(
    command: string,
    args: string[],
    env: Record<string, string>,
    stdin: 'pipe' | 'ignore',
  ): ChildProcess {
    const child = spawn('ip', ['netns', 'exec', this.space, ...DIES_WITH_US, command, ...args], {
      stdio: [stdin, 'pipe', 'pipe'],
      cwd: this.home,
      // Contains no variables of the test's own environment except the search path of programs.
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: this.home,
        TMPDIR: process.env['TMPDIR'] ?? '/tmp',
        ...cacheOf(),
        ...env,
      },
    })
    this.#children.add(child)
    child.once('exit', () => this.#children.delete(child))
    return child
  }

  /**
   * Runs a command and waits until it has ended.
   * @throws Error with the command's output if the command fails
   */
  async run(
    command: string,
    args: string[],
    env: Record<string, string> = {},
  ): Promise<{ stdout: string; stderr: string }> {
    const child = this.#spawn(command, args, env, 'ignore')
    const said = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name]?.setEncoding('utf8').on('data', (text: string) => {
        said[name] += text
      })
    const status = await new Promise<number | null>((resolve) => child.once('close', resolve))
    if (status !== 0)
      throw new Error(
        `${this.name}: ${args.join(' ')} ended with ${String(status)}: ${said.stderr}${said.stdout}`,
      )
    return said
  }

  /** Runs a program of this source tree with Node. */
  node(
    script: string,
    args: string[],
    env: Record<string, string> = {},
  ): Promise<{ stdout: string; stderr: string }> {
    return this.run(process.execPath, [join(TREE, script), ...args], env)
  }

  /**
   * Starts a long-running program; resolves once the program reports that it is ready. `ip netns
   * exec` replaces itself with the program, so the process id is the program's.
   */
  async start(
    command: string,
    args: string[],
    ready: RegExp,
    env: Record<string, string> = {},
  ): Promise<ChildProcess> {
    const child = this.#spawn(command, args, env, 'pipe')
    let output = ''
    await new Promise<void>((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        stream?.setEncoding('utf8').on('data', (text: string) => {
          if (existsSync(this.home)) appendFileSync(this.logFile, text)
          output = (output + text).slice(-5000)
          if (ready.test(output)) resolve()
        })
      }
      child.once('error', reject)
      child.once('exit', (code, signal) =>
        reject(
          new Error(`${this.name}: ${args.join(' ')} ended (${String(signal ?? code)}): ${output}`),
        ),
      )
    })
    return child
  }

  startNode(
    script: string,
    args: string[],
    ready: RegExp,
    env: Record<string, string> = {},
  ): Promise<ChildProcess> {
    return this.start(process.execPath, [join(TREE, script), ...args], ready, env)
  }

  /** Connects or disconnects the host's network link. */
  link(state: 'up' | 'down'): void {
    ip('-n', this.space, 'link', 'set', 'eth0', state)
  }

  lastLines(): string {
    return existsSync(this.logFile)
      ? readFileSync(this.logFile, 'utf8').trim().split('\n').slice(-8).join('\n')
      : ''
  }

  /** Simulates a power cut. Resolves when no process of the host is running. */
  async cutPower(): Promise<void> {
    await Promise.all(
      [...this.#children].map(
        (child) =>
          new Promise<void>((resolve) => {
            child.once('exit', () => resolve())
            child.kill('SIGKILL')
          }),
      ),
    )
    // Repeats the kill, so that processes that were started by the ended ones end too.
    for (let tries = 0; tries < 50; tries++) {
      const { stdout } = spawnSync('ip', ['netns', 'pids', this.space], { encoding: 'utf8' })
      const pids = stdout.split('\n').filter(Boolean).map(Number)
      if (pids.length === 0) return
      for (const pid of pids)
        try {
          process.kill(pid, 'SIGKILL')
        } catch {
          /* The process has ended. */
        }
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

/** Returns the compile cache, so that a dozen processes do not each compile the same program. */
const cacheOf = (): Record<string, string> =>
  Object.fromEntries(
    ['NODE_COMPILE_CACHE', 'NODE_OPTIONS'].flatMap((name) =>
      process.env[name] ? [[name, process.env[name]]] : [],
    ),
  )

/** Hosts on one bridge. The test must always call `remove`. */
export class Hosts {
  readonly #id = `cu${randomBytes(3).toString('hex')}`
  readonly #folder: string
  readonly #hosts: Host[] = []
  readonly #spaces: string[] = []

  constructor(folder: string) {
    this.#folder = folder
    this.#space('net')
    ip('-n', `${this.#id}-net`, 'link', 'add', 'br0', 'type', 'bridge')
    ip('-n', `${this.#id}-net`, 'link', 'set', 'br0', 'up')
  }

  #space(name: string): string {
    const space = `${this.#id}-${name}`
    ip('netns', 'add', space)
    this.#spaces.push(space)
    ip('-n', space, 'link', 'set', 'lo', 'up')
    return space
  }

  add(name: string): Host {
    const space = this.#space(name)
    const number = this.#hosts.length + 1
    ip(
      'link',
      'add',
      'eth0',
      'netns',
      space,
      'type',
      'veth',
      'peer',
      'name',
      `port${number}`,
      'netns',
      `${this.#id}-net`,
    )
    ip('-n', `${this.#id}-net`, 'link', 'set', `port${number}`, 'master', 'br0', 'up')
    ip('-n', space, 'address', 'add', `${PREFIX}.${number}/24`, 'dev', 'eth0')
    ip('-n', space, 'link', 'set', 'eth0', 'up')
    const host = new Host(name, space, `${PREFIX}.${number}`, join(this.#folder, name))
    this.#hosts.push(host)
    return host
  }

  lastLines(): string {
    return this.#hosts.map((host) => `--- ${host.name}\n${host.lastLines()}`).join('\n')
  }

  /** Ends all processes in the hosts and removes the hosts. */
  async remove(): Promise<void> {
    await Promise.all(this.#hosts.map((host) => host.cutPower()))
    this.destroy()
  }

  /**
   * Ends all processes in the hosts and removes the hosts synchronously, for an exit that cannot
   * wait.
   */
  destroy(): void {
    for (const space of this.#spaces.splice(0)) {
      const { stdout } = spawnSync('ip', ['netns', 'pids', space], { encoding: 'utf8' })
      for (const pid of stdout.split('\n').filter(Boolean))
        try {
          process.kill(Number(pid), 'SIGKILL')
        } catch {
          /* The process has ended. */
        }
      spawnSync('ip', ['netns', 'del', space])
    }
  }
}
