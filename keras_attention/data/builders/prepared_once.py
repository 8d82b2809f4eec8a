"""Base of all builders: several processes may prepare the same data at the same time."""

import errno

import tensorflow_datasets as tfds


class PreparedOnce(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """Base of the data sets of this package.

    Processes that find a folder without the data each prepare it beside its place and then move it there, as TensorFlow
    Datasets does it. The first to finish wins; the others drop their own work and read its data.
    """

    def __repr__(self):
        return f"{type(self).__name__}({self.info.full_name!r}, data_dir={str(self.data_dir_root)!r})"

    def download_and_prepare(self, **arguments):
        was_prepared = self.info.initialized
        try:
            super().download_and_prepare(**arguments)
        except OSError as error:
            is_taken = isinstance(error, FileExistsError) or error.errno == errno.ENOTEMPTY
            if not (is_taken and self.data_path.exists()):
                raise
        if not was_prepared:
            self.info.read_from_directory(self.data_dir)
