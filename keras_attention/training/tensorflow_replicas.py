"""A sum over the replicas of `tf.distribute`, which only TensorFlow knows."""


def tensorflow_replica_sum(tensor):
    """The sum of `tensor` over all replicas that take this step; `tensor` itself on one device."""
    import tensorflow as tf

    context = tf.distribute.get_replica_context()  # `None` where Keras only infers shapes
    if context is None or context.num_replicas_in_sync == 1:
        return tensor
    return context.all_reduce("SUM", tensor)
