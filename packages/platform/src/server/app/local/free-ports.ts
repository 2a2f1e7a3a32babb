import { createSocket, type Socket } from 'node:dgram'
import { createServer } from 'node:net'

const HOST = '127.0.0.1'
/**
 * Ports that are searched. They lie below those that systems use for outgoing connections (Linux:
 * 32768 and above), so an outgoing connection cannot take a port before its server listens.
 */
const [FIRST, LAST] = [15_000, 32_000]
/**
 * Distance between the ports at which processes with consecutive ids begin to search, so that they
 * rarely compete.
 */
const SPACING = 40
let next = FIRST + ((process.pid * SPACING) % (LAST - FIRST))

/**
 * Claims a TCP port by binding the UDP port of the same number. Only one process of a machine can
 * bind it, and the system releases it when the process ends, even if it is killed. A lock file
 * would outlive a killed process.
 * @returns null if another process has claimed it
 */
const claim = (port: number): Promise<Socket | null> =>
  new Promise((resolve) => {
    const socket = createSocket('udp4')
    socket.once('error', () => {
      socket.close()
      resolve(null)
    })
    // The socket must not keep the process running.
    socket.bind({ address: HOST, port, exclusive: true }, () => {
      resolve(socket.unref())
    })
  })

const isUnused = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, HOST, () => {
      server.close(() => resolve(true))
    })
  })

/**
 * Reserves TCP ports of 127.0.0.1 for servers that are yet to be started, by this process or its
 * children, where a configuration must name the port before its server runs. Until this process
 * ends, no other process that calls this function gets or probes these ports, even while no server
 * listens on them. If this process may bind port 0 and publish the port, do that instead.
 * @param from port at which the search begins
 * @throws Error if too few ports are free
 */
export async function freePorts(count: number, from = next): Promise<number[]> {
  next = from
  const ports: number[] = []
  for (let tried = 0; ports.length < count; tried++) {
    if (tried >= LAST - FIRST)
      throw new Error(
        `too few free ports on ${HOST} from ${FIRST} to ${LAST - 1}: ${count} are required`,
      )
    const port = next
    next = next + 1 < LAST ? next + 1 : FIRST
    // The port is claimed first, because the probe below would disturb a server of another process
    // that is about to listen on its own port.
    const claimed = await claim(port)
    if (!claimed) continue
    if (await isUnused(port)) ports.push(port)
    else claimed.close()
  }
  return ports
}
