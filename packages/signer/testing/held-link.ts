import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/**
 * Moments of a signature, in their order. `opened`: the partner has judged the transaction. `round`: the
 * coordinator has sent its first rounds. `answered`: the partner has recorded the transaction and sent
 * its last share, which the coordinator has not received. `finished`: the coordinator has recorded the
 * transaction and has the signature, and the partner does not.
 */
export const MOMENTS = ['opened', 'round', 'answered', 'finished'] as const
export type Moment = (typeof MOMENTS)[number]

/** The rounds of a signature have more bytes than this. Pings have less. */
const ROUND_BYTES_MIN = 10_000

/**
 * Forwards the connections of a coordinator to its partner, and stops at a moment of the next
 * signature, so that a test can kill nodes there. It counts messages by their size and direction,
 * because they are encrypted.
 */
export class HeldLink {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Port of the partner. */
  target = 0
  #hold: { moment: Moment; reached: () => void } | null = null
  #isHeld = false

  private constructor() {
    this.#server = createServer((socket) => {
      this.#forward(socket)
    })
  }

  /** Listens on a free port of this host. */
  static async start(): Promise<HeldLink> {
    const link = new HeldLink()
    link.#server.listen(0, '127.0.0.1')
    await once(link.#server, 'listening')
    return link
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Resolves when the next signature has reached a moment. Nothing is forwarded from then on. */
  holdAt(moment: Moment): Promise<void> {
    return new Promise((resolve) => {
      this.#hold = { moment, reached: resolve }
    })
  }

  /** Closes all connections, and forwards new ones. */
  release(): void {
    this.#isHeld = false
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.#server.close()
    this.release()
  }

  #forward(coordinator: Socket): void {
    if (this.#isHeld) return void coordinator.destroy()
    const partner = connect(this.target, '127.0.0.1')
    /** Number of messages of a signature that were forwarded. */
    let count = 0
    /** The side that has sent last, and its bytes since the other one. A message may come in parts. */
    let last = { from: coordinator, bytes: 0 }
    const pass = (from: Socket, to: Socket): void => {
      this.#sockets.add(from)
      from.on('data', (chunk: Buffer) => {
        if (this.#isHeld) return
        if (last.from !== from) last = { from, bytes: 0 }
        last.bytes += chunk.length
        const isNext = (from === partner) === (count % 2 === 0)
        const isOfSignature = last.bytes >= ROUND_BYTES_MIN || count === MOMENTS.length - 1
        if (this.#hold && isNext && isOfSignature) {
          if (MOMENTS[count] === this.#hold.moment) return this.#reached()
          count++
        }
        to.write(chunk)
      })
      from.on('error', () => from.destroy())
      from.on('close', () => {
        this.#sockets.delete(from)
        to.destroy()
      })
    }
    pass(coordinator, partner)
    pass(partner, coordinator)
  }

  #reached(): void {
    this.#isHeld = true
    this.#hold?.reached()
    this.#hold = null
  }
}
