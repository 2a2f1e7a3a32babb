import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Refusal } from '../../../../signer/src/errors.ts'
import { Backups } from '../../../../signer/src/keys/backup.ts'
import { makeRecovery } from '../../../../signer/src/set-up/files.ts'
import type { InProcessNodes } from '../../in-process-nodes.ts'
import type { SeededRandom } from '../seeded-random.ts'
import type { GovernedNodes } from './governed-nodes.ts'
import type { PolicyRecord } from './policy-record.ts'

const TIMEOUT_MS = 1000
/** Files of a data directory, which a backup contains. The nodes of a simulation do not read them. */
const FILES = ['config.json', 'identity.key', 'identity.pub', 'tls.key', 'tls.crt']
/** Of this number of acts, one is a loss and three are backups. */
const ONE_OF = 10

/** The parts of a simulation that losses of a node use. */
export interface LossContext {
  readonly random: SeededRandom
  readonly schedule: { readonly nowMs: number }
  readonly nodes: Pick<InProcessNodes, 'home' | 'lose'>
  readonly lines: string[]
  noted(kind: string): void
  /** Called when a node has lost its record. */
  onLost?(node: number): void
}

/**
 * A node that loses its record, and its operator, who restores it from the last backup and from the
 * records of its peers. Backup and restoration are those of the product. The node is the same in a
 * whole run: a request from before the restorations of two nodes could be signed by no pair.
 */
export class NodeLosses {
  readonly #context: LossContext
  readonly #policy: PolicyRecord & { readonly nodes: GovernedNodes }
  readonly #identity = generateKeyPairSync('ed25519')
  readonly #recovery = makeRecovery()
  readonly #home: string
  #node = 0
  #files = 0

  constructor(context: LossContext, policy: PolicyRecord & { readonly nodes: GovernedNodes }) {
    this.#context = context
    this.#policy = policy
    this.#home = join(context.nodes.home, 'backups')
  }

  /** Makes a backup, loses the record or restores it. */
  async act(): Promise<void> {
    const { random } = this.#context
    const isFirst = this.#files === 0
    if (isFirst) await this.backup()
    const draw = random.below(ONE_OF)
    if (this.#policy.nodes.isLost(this.#node)) {
      if (draw < ONE_OF / 2) await this.#restore()
    } else if (draw === ONE_OF - 1) this.#lose()
    else if (draw >= ONE_OF - 4) await this.backup()
  }

  /** Restores the node if it is lost. The nodes must be connected. */
  async settle(): Promise<void> {
    const { nodes } = this.#policy
    if (!nodes.isLost(this.#node)) return
    nodes.heal()
    await this.#restore()
  }

  /** Writes a backup, which replaces the last one. */
  async backup(): Promise<void> {
    if (this.#files === 0) {
      this.#node = 1 + this.#context.random.below(3)
      mkdirSync(this.#home)
      for (const name of FILES) writeFileSync(join(this.#home, name), name)
      writeFileSync(join(this.#home, 'secret'), this.#recovery.secret)
    }
    this.#files++
    await this.#backups().backup({ file: this.#file })
  }

  get #file(): string {
    return join(this.#home, `${this.#files}.json`)
  }

  #lose(): void {
    const { nodes: governed } = this.#policy
    this.#context.noted('a node lost its record')
    this.#policy.lose(this.#node, this.#context.schedule.nowMs, (untilMs) =>
      governed.isRead(this.#node, untilMs),
    )
    governed.lose(this.#node)
    this.#context.nodes.lose(this.#node)
    this.#context.onLost?.(this.#node)
  }

  async #restore(): Promise<void> {
    try {
      await this.#backups().restore({
        file: this.#file,
        recovery_secret_file: join(this.#home, 'secret'),
      })
    } catch (error) {
      // A peer cannot be reached; the operator repeats the command.
      if (!(error instanceof Refusal) || error.code !== 'PEER_UNAVAILABLE') throw error
      this.#context.lines.push(`node ${this.#node} was not restored: ${error.message}`)
      return
    }
    this.#context.noted('a node was restored')
    this.#policy.nodes.rejoin(this.#node)
  }

  /** Backups of the node, which has no shares: the simulation signs with a whole key. */
  #backups(): Backups {
    const { store, policies, peers, confirmation } = this.#policy.nodes.partsOf(this.#node)
    const parts = {
      config: {
        node: this.#node,
        mode: 'local',
        home: this.#home,
        identity: this.#identity.privateKey,
        identityPublic: this.#identity.publicKey,
        recovery_public_key: this.#recovery.public,
        timeouts_ms: { keygen: TIMEOUT_MS },
      },
      store,
      peers,
      confirmation,
      keyring: { identities: new Map() },
      log: () => undefined,
      policies: () => policies.forBackup(),
    }
    return new Backups(parts as unknown as ConstructorParameters<typeof Backups>[0])
  }
}
