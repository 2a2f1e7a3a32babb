/** The record is not what it must be: a node does not start with it, and writes nothing into it that it could not read. */
export class RecordError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'RecordError'
  }
}
