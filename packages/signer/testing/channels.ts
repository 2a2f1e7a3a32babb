import type { Server } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { callOf, FrameReader, PROTOCOL_NAME } from '../src/transport/channel.ts'

/**
 * Makes a test server accept the calls of nodes. `heard` answers on the stream, or sends false data
 * on it.
 */
export function takesCalls(
  server: Server,
  onCall: (call: { path: string; sealed: Buffer }, stream: TLSSocket) => void,
): Server {
  const open = new Set<TLSSocket>()
  server.on('upgrade', (_request, stream) => {
    const socket = stream as TLSSocket
    open.add(socket)
    socket
      .on('close', () => {
        open.delete(socket)
      })
      .on('error', () => {})
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${PROTOCOL_NAME}\r\n\r\n`,
    )
    const reader = new FrameReader()
    socket.on('data', (chunk: Buffer) => {
      const frame = reader.push(chunk, 1e9)
      if (frame) onCall(callOf(frame), socket)
    })
  })
  const close = server.closeAllConnections.bind(server)
  server.closeAllConnections = () => {
    close()
    for (const socket of open) socket.destroy()
  }
  return server
}
