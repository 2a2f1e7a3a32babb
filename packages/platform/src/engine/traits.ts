/** In what the families differ: their own word for it, in their folders. */
export { traitsOf, type Traits } from '@custody/chains'
